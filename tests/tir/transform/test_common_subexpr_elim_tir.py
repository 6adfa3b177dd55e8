# SPDX-License-Identifier: Apache-2.0
"""Computes an expression that occurs several times in a statement once."""

import numpy as np
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, store


def test_common_subexpressions():
    A, B, j = buffer((64,), name="A"), buffer((64,), name="B"), tir.Var("j", "int32")
    v = tir.Var("v", "int32")
    before = func([A, B, j], loop(4, lambda i: store(B, i * 4 + j, A[i * 4 + j])))
    expected = func([A, B, j], loop(4, lambda i: tir.LetStmt(v, i * 4 + j, store(B, v, A[v]))))
    check(tt.CommonSubexprElimTIR(), before, expected)
    check(tt.CommonSubexprElimTIR(False), before, before)


def test_functions_are_called_once():
    A, x, v = buffer((4,)), tir.Var("x", "float32"), tir.Var("v", "float32")
    before = func([A, x], store(A, 0, tir.exp(x) * (tir.exp(x) + x)))
    expected = func([A, x], tir.LetStmt(v, tir.exp(x), store(A, 0, v * (v + x))))
    check(tt.CommonSubexprElimTIR(), before, expected)


def test_common_subexpressions_inside_of_others():
    A, x, y = buffer((64,), "int32"), tir.Var("x", "int32"), tir.Var("y", "int32")
    u, v = tir.Var("u", "int32"), tir.Var("v", "int32")
    before = func([A, x, y], store(A, 0, ((x + y) * 2 + 3) * ((x + y) * 2 + 4)))
    result = apply(tt.CommonSubexprElimTIR(), before)
    expected = func([A, x, y], tir.LetStmt(v, (x + y) * 2, store(A, 0, (v + 3) * (v + 4))))
    tvm.ir.assert_structural_equal(result, expected)
    before = func([A, x, y], store(A, x + y, ((x + y) * 2 + 3) * ((x + y) * 2 + 4)))
    expected = func(
        [A, x, y], tir.LetStmt(u, x + y, tir.LetStmt(v, u * 2, store(A, u, (v + 3) * (v + 4))))
    )
    check(tt.CommonSubexprElimTIR(), before, expected)


def test_lanes_of_vectors_keep_their_form():
    """vscale() * 4 as the number of lanes has no name, wherever else it occurs."""

    @T.prim_func
    def before(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
        for i in range(64 // T.vscale()):
            B[T.ramp(i * (T.vscale() * 4), 1, T.vscale() * 4)] = A[
                T.ramp(i * (T.vscale() * 4), 1, T.vscale() * 4)
            ]

    after = apply(tt.CommonSubexprElimTIR(), before)
    assert "T.Ramp(cse_v1, 1, T.vscale() * 4)" in after.script()


def test_common_subexpressions_found_before_what_uses_them():
    A, B, x = buffer((64,), name="A"), buffer((64,), name="B"), tir.Var("x", "int32")
    u, v = tir.Var("u", "int32"), tir.Var("v", "int32")

    def value(a, b):
        return A[a] * B[a] + A[b] * B[b]

    before = func([A, B, x], store(A, 0, value(x * 2, x * 2 + 1)))
    expected = tir.LetStmt(u, x * 2, tir.LetStmt(v, u + 1, store(A, 0, value(u, v))))
    check(tt.CommonSubexprElimTIR(), before, func([A, B, x], expected))


def test_common_subexpressions_by_value_where_a_part_is_the_whole():
    """x * 2 // 1 is x * 2: bound once, not for ever."""
    A, x, v = buffer((64,), "int32"), tir.Var("x", "int32"), tir.Var("v", "int32")
    whole = tir.FloorDiv(x * 2, tir.const(1, "int32"))
    before = func([A, x], store(A, 2 * x, whole))
    expected = func([A, x], tir.LetStmt(v, x * 2, store(A, v, v)))
    check(tt.CommonSubexprElimTIR(identify_equiv_terms=True), before, expected)


def test_common_subexpressions_by_value_do_not_name_each_other():
    A, x = buffer((64,), "int32"), tir.Var("x", "int32")
    p, q = x % 2 * x, tir.Max(x // x, tir.const(1, "int32"))
    before = func([A, x], store(A, p * q % q, q * p // q + p * q % q))
    result = apply(tt.CommonSubexprElimTIR(identify_equiv_terms=True), before)
    tir.analysis.verify_well_formed(result)
    got, expected = np.zeros((2, 64), "int32")
    for function, array in ((before, expected), (result, got)):
        tir.interpret(function)(array, 3)
    np.testing.assert_array_equal(got, expected)


def test_values_that_are_read_are_not_shared():
    A = buffer((64,), "int32")
    before = func([A], loop(4, lambda i: store(A, i, A[i] * A[i])))
    check(tt.CommonSubexprElimTIR(), before, before)
