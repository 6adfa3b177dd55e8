# SPDX-License-Identifier: Apache-2.0
"""Watching the compilation of graphs: instruments, timing, dumps, the explanation."""

import numpy as np
import tvm
from tvm import relax
from tvm.driver import explain
from tvm.ir.instrument import PassTimingInstrument, pass_instrument
from tvm.relax.kernels import lower
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Mod:
    @R.function
    def main(x: R.Tensor((8, 16), "float32"), w: R.Tensor((16, 4), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            R.output(z)
        return z


def test_instruments_see_both_levels():
    seen = []

    @pass_instrument
    class Names:
        def run_before_pass(self, mod, info):
            seen.append(str(info.name))

    timing = PassTimingInstrument()
    with tvm.transform.PassContext(instruments=[Names(), timing]):
        tvm.compile(Mod, "llvm")
        text = timing.render()
    assert seen.index("LegalizeOps") < seen.index("VMShapeLower") < seen.index("tir.Simplify")
    assert "LegalizeOps" in text and "tir.Simplify" in text


def test_passes_can_be_left_out():
    x, w = np.ones((8, 16), "float32"), np.ones((16, 4), "float32")
    for disabled in (["FuseOps"], ["StaticPlanBlockMemory"], ["KillAfterLastUse", "FuseTIR"]):
        with tvm.transform.PassContext(disabled_pass=disabled):
            executable = tvm.compile(Mod, "llvm")
        vm = relax.VirtualMachine(executable, tvm.cpu())
        np.testing.assert_array_equal(vm["main"](x, w).numpy(), 16)


def test_the_explanation(capsys):
    executable = tvm.compile(Mod, "llvm", explain=True)
    text = capsys.readouterr().out
    assert text.splitlines()[0].split() == ["kernel", "calls", "MFLOP", "rule", "operators"]
    vm = relax.VirtualMachine(executable, tvm.cpu())
    x, w = np.ones((8, 16), "float32"), np.ones((16, 4), "float32")
    np.testing.assert_array_equal(vm["main"](x, w).numpy(), 16)

    target = tvm.target.Target("llvm")
    (row,) = explain.kernels(lower(Mod, target), target)
    assert row["calls"] == 1 and len(row["operators"]) == 2
    assert row["flops"] >= 2 * 8 * 16 * 4
    assert row["rule"] in ("BlockByBlock", "RowByRow")
