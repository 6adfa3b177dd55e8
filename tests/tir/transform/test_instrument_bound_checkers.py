# SPDX-License-Identifier: Apache-2.0
"""Checks every index of a buffer when the program runs."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, func, store


def test_bound_checkers_raise_index_error():
    A, n = buffer((4,)), tir.Var("n", "int32")
    result = apply(tt.InstrumentBoundCheckers(), func([A, n], store(A, n, A[n - 1])))
    a = np.zeros(4, "float32")
    tir.interpret(result)(a, 2)
    for bad in (0, 4):
        with pytest.raises(IndexError, match="index 0 of buffer A from 0 to below 4"):
            tir.interpret(result)(a, bad)


def test_bound_checkers_respect_conditions():
    A, n = buffer((4,)), tir.Var("n", "int32")
    value = tir.if_then_else(n > 0, A[n - 1], tir.const(7.0, "float32"))
    result = apply(tt.InstrumentBoundCheckers(), func([A, n], store(A, 0, value)))
    a = np.zeros(4, "float32")
    tir.interpret(result)(a, 0)
    assert a[0] == 7


def test_bound_checkers_know_variables_of_expressions():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        x = T.int32()
        A[0] = T.Let(B[x], where={x: A[1] + 1})

    after = tvm.tir.transform.InstrumentBoundCheckers()(tvm.IRModule({"main": before}))["main"]
    assert tvm.tir.analysis.verify_well_formed(after)
    with pytest.raises(IndexError, match="expected index 0 of buffer B from 0 to below 8, got 9"):
        tvm.tir.interpret(after)(np.full(8, 8, "int32"), np.zeros(8, "int32"))


def test_bound_checkers_leave_out_what_is_provable():
    @T.prim_func
    def before(A: T.Buffer((16,), "float32"), n: T.int32):
        for i in range(16):
            if i < n:
                A[i] = T.float32(1)

    mod = tvm.IRModule({"main": before})
    tvm.ir.assert_structural_equal(tt.InstrumentBoundCheckers()(mod), mod)


@pytest.mark.parametrize("first, told", [(3, 11), (-2, -2)])
def test_bound_checkers_look_at_both_ends_of_a_vector(first, told):
    @T.prim_func
    def before(A: T.Buffer((10,), "float32"), n: T.int32):
        A[T.Ramp(n, 2, 5)] = T.Broadcast(T.float32(1), 5)

    after = tt.InstrumentBoundCheckers()(tvm.IRModule({"main": before}))["main"]
    a = np.zeros(10, "float32")
    tir.interpret(after)(a, 1)
    assert a.tolist() == [0, 1] * 5
    with pytest.raises(IndexError, match=f"from 0 to below 10, got {told}$"):
        tir.interpret(after)(a, first)


def test_bound_checkers_look_at_conditions_of_loops():
    """Every time one is evaluated: the fifth element does not exist."""

    @T.prim_func
    def before(A: T.Buffer((4,), "int32"), I: T.Buffer((1,), "int32")):
        while A[I[0]] > 0:
            I[0] = I[0] + 1

    after = tt.InstrumentBoundCheckers()(tvm.IRModule({"main": before}))["main"]
    i = np.zeros(1, "int32")
    tir.interpret(after)(np.array([1, 1, 0, 1], "int32"), i)
    assert i[0] == 2
    with pytest.raises(IndexError, match="expected index 0 of buffer A from 0 to below 4, got 4"):
        tir.interpret(after)(np.ones(4, "int32"), np.zeros(1, "int32"))
