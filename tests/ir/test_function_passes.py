# SPDX-License-Identifier: Apache-2.0
"""Passes over functions run function by function, on several threads, with the same results."""

import pytest
import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt


@T.prim_func
def unrolled(A: T.Buffer((64,), "float32")):
    for i in range(4):
        if i < 9:
            A[i * 4 // 4] = T.float32(1)


@T.prim_func
def wrong(A: T.Buffer((64,), "float32")):
    A[0] = T.call_intrin("float32", "tir.undef") + T.float32(1)


def module(count, **others):
    functions = {f"f{i}": unrolled.with_attr("global_symbol", f"f{i}") for i in range(count)}
    return tvm.IRModule({**functions, **others})


PASSES = [tt.Simplify(), tt.UnrollLoop(), tt.Simplify()]
CONFIG = {"tir.UnrollLoop": {"auto_max_step": 16}}


def test_threads_know_the_context():
    sequence = tvm.transform.Sequential(PASSES)
    with tvm.transform.PassContext(config=CONFIG):
        together = sequence(module(50))
        one_by_one = module(50)
        for step in PASSES:
            one_by_one = step(one_by_one)
    tvm.ir.assert_structural_equal(together, one_by_one)
    assert "for" not in together["f7"].script()
    without = sequence(module(50))
    assert "for" in without["f7"].script()


def test_instruments_see_every_pass():
    seen = []

    @tvm.instrument.pass_instrument
    class Recorder:
        def run_after_pass(self, mod, info):
            seen.append(info.name)

    with tvm.transform.PassContext(config=CONFIG, instruments=[Recorder()]):
        tvm.transform.Sequential(PASSES)(module(50))
    assert seen[:3] == ["tir.Simplify", "tir.UnrollLoop", "tir.Simplify"]


def test_disabled_passes_are_left_out():
    with tvm.transform.PassContext(config=CONFIG, disabled_pass=["tir.UnrollLoop"]):
        result = tvm.transform.Sequential(PASSES)(module(50))
    assert "for" in result["f3"].script()


def test_errors_come_from_threads():
    sequence = tvm.transform.Sequential([tt.Simplify(), tt.RemoveStoreUndef()])
    with pytest.raises(ValueError, match="RemoveStoreUndef: expected T.undef"):
        sequence(module(50, bad=wrong))


def test_python_passes_in_between():
    @tvm.transform.module_pass(opt_level=0)
    def rename(mod, ctx):
        return tvm.IRModule({v.name_hint + "_": f for v, f in mod.functions.items()})

    with tvm.transform.PassContext(config=CONFIG):
        result = tvm.transform.Sequential([*PASSES, rename, tt.Simplify()])(module(20))
    assert sorted(v.name_hint for v in result.functions) == sorted(f"f{i}_" for i in range(20))
