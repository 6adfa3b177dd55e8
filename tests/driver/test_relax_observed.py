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
    head = ["kernel", "calls", "MFLOP", "MB", "rule", "blocking", "operators"]
    assert text.splitlines()[0].split() == head
    vm = relax.VirtualMachine(executable, tvm.cpu())
    x, w = np.ones((8, 16), "float32"), np.ones((16, 4), "float32")
    np.testing.assert_array_equal(vm["main"](x, w).numpy(), 16)

    target = tvm.target.Target("llvm")
    (row,) = explain.kernels(lower(Mod, target), target)
    assert row["calls"] == 1 and len(row["operators"]) == 2
    assert row["flops"] >= 2 * 8 * 16 * 4
    assert row["bytes"] == 4 * (8 * 16 + 16 * 4 + 8 * 4)
    assert row["rule"] in ("BlockByBlock", "RowByRow")


def test_the_report(capsys, tmp_path):
    """Every kernel with its time, and a plot under the limits of the machine."""
    tvm.compile(Mod, "llvm -num-cores=1", explain=str(tmp_path / "report.html"))
    assert "% of the limit" in capsys.readouterr().out
    page = (tmp_path / "report.html").read_text()
    assert page.count("<circle") == 1 and "GFLOP/s" in page and "fused_matmul_relu" in page


def test_blocking_of_a_product():
    target = tvm.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=4")
    rows = explain.kernels(lower(product(256), target), target)
    assert "parallel" in rows[0]["blocking"] and "16 lanes" in rows[0]["blocking"]


def product(n):
    bb = relax.BlockBuilder()
    x, w = (relax.Var(name, relax.TensorStructInfo((n, n), "float32")) for name in "xw")
    with bb.function("main", [x, w]):
        with bb.dataflow():
            y = bb.emit_output(relax.op.matmul(x, w))
        bb.emit_func_output(y)
    return bb.get()
