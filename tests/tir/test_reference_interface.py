# SPDX-License-Identifier: Apache-2.0
"""Functions and modules that scripts use, with the results they expect."""

import importlib

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T


def flops(func):
    return tir.analysis.estimate_tir_flops(tvm.IRModule({"main": func}))


def test_flops_are_arithmetic_on_values():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            A[i] = T.max(A[i] * 2.0, 0.0)  # 2
            B[i] = B[i] + 1  # 1, of any type
            A[i + 0] = T.exp(A[i] + 1.0)  # 1: of calls the arguments
            if A[i] * 2.0 > 1.0:  # comparisons are none
                A[i] = A[i] * 2.0 + 1.0  # 2: the larger branch
            else:
                A[i] = A[i] - 1.0

    assert flops(func) == 8 * 6


def test_flops_said_by_attributes():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.attr(0, "estimated_flops", 5):
                A[i] = A[i] + 1.0

    assert flops(func) == 40 and flops(func.with_attr("estimated_flops", 7)) == 7


def test_programs_that_are_accepted():
    x = tir.Var("x", "int32")
    twice = tir.Evaluate(tir.Let(x, 1, x + 1) + tir.Let(x, 1, x + 1))
    other = tir.Evaluate(tir.Let(x, 1, x + 1) + tir.Let(x, 2, x + 1))
    assert tir.analysis.verify_ssa(tir.PrimFunc([], twice))
    assert not tir.analysis.verify_ssa(tir.PrimFunc([], other))

    @T.prim_func
    def view(p: T.handle("float32")):
        B = T.Buffer((8,), "float32", data=p)
        B[0] = 1.0

    assert tir.analysis.verify_well_formed(view)


def test_accesses_outside_are_schedule_errors():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i + 1] = 1.0

    with pytest.raises(tir.ScheduleError, match="index 0 of buffer A reaches its extent"):
        tir.analysis.OOBChecker()(tvm.IRModule({"main": func}))


@pytest.mark.parametrize(
    "package", "arith ir te tir tir.analysis tir.transform target runtime".split()
)
def test_ffi_api_modules(package):
    module = importlib.import_module(f"tvm.{package}._ffi_api")
    with pytest.raises(AttributeError, match=f"expected a function '{package}.nothing'"):
        module.nothing  # noqa: B018


def test_ffi_api_functions():
    from tvm.target import _ffi_api as target
    from tvm.tir.transform import _ffi_api as transform

    assert isinstance(transform.Simplify(), tvm.transform.Pass)
    pytest.importorskip("tvm.target.codegen")
    if tvm.target.codegen.llvm_version_major(allow_none=True) is not None:
        assert str(target.llvm_get_system_cpu()) and str(target.llvm_get_system_triple())


def test_errors_are_caught_as_tvm_errors():
    assert tvm.TVMError is tvm.base.TVMError is Exception
    assert issubclass(tvm.error.TVMError, RuntimeError) and tvm.error.TVMError is not Exception
    with pytest.raises(tvm.error.TVMError, match="expected a constant or vscale"):
        tir.Ramp(tir.Var("x", "int32"), 1, tir.vscale() + 1)


def test_types_and_lanes_of_operators():
    unsigned, signed = tir.Var("a", "uint8"), tir.Var("b", "int8")
    assert (unsigned + signed).dtype == "uint8" == (signed + unsigned).dtype
    assert (unsigned + tir.Var("c", "int16")).dtype == "int16"
    ramp = tir.Ramp(tir.Var("x", "int32"), 1, 4 * tir.vscale())
    assert str(ramp.lanes) == "T.vscale() * 4"
    assert tir.Broadcast(unsigned, tir.IntImm("int64", 4)).lanes.dtype == "int32"


def test_instructions_and_traces_as_text():
    @T.prim_func
    def func(A: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = 1.0

    sch = tir.Schedule(func)
    sch.get_loops("A")
    assert str(sch.trace.insts[-1]) == "_, _ = sch.get_loops(block=_)"
    assert str(sch.trace).splitlines()[2].startswith("  b0 = ")
    state = tir.ScheduleState(func)
    block = func.body.block.body.body.body.block
    assert state.get_sref(block).same_as(state.get_sref(block))
