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
        with pytest.raises(IndexError, match="index 0 of buffer A below 4"):
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
    with pytest.raises(IndexError, match="expected index 0 of buffer B below 8, got 9"):
        tvm.tir.interpret(after)(np.full(8, 8, "int32"), np.zeros(8, "int32"))
