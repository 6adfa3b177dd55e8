# SPDX-License-Identifier: Apache-2.0
"""Moves conditions and lets out of the loops they do not depend on."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import interpret
from tvm.tir import transform as tt
from tvm.tir.transform import HoistedConditionals as C
from tvm.tir.transform import HoistedLetBindings as L

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, seq, store, when


def test_hoist_condition_out_of_the_loop():
    A, n = buffer((8,)), tir.Var("n", "int32")
    before = func([A, n], loop(8, lambda i: when(n > 4, store(A, i, 1.0))))
    check(
        tt.HoistIfThenElse(), before, func([A, n], when(n > 4, loop(8, lambda i: store(A, i, 1.0))))
    )


def test_condition_that_reads_memory_stays():
    A, B = buffer((8,)), buffer((8,), name="B")
    before = func([A, B], loop(8, lambda i: when(B[0] > 0.0, store(A, i, 1.0))))
    check(tt.HoistIfThenElse(), before, before)


def test_hoist_what_the_first_iteration_begins_with():
    A, C = buffer((8,)), buffer((1,), name="C")

    def total(k):
        return store(C, 0, C[0] + A[k])

    before = func([A, C], loop(8, lambda k: seq(when(k == 0, store(C, 0, 0.0)), total(k))))
    check(tt.HoistIfThenElse(), before, func([A, C], seq(store(C, 0, 0.0), loop(8, total))))


def test_hoist_the_beginning_of_nested_reductions():
    """A sum of indices is 0 where each is."""
    A, C = buffer((8,)), buffer((1,), name="C")

    def total(k, j):
        return store(C, 0, C[0] + A[k * 4 + j])

    def nest(body):
        return loop(2, lambda k: loop(4, lambda j: body(k, j), "j"), "k")

    before = func(
        [A, C], nest(lambda k, j: seq(when(k * 4 + j == 0, store(C, 0, 0.0)), total(k, j)))
    )
    check(tt.HoistIfThenElse(), before, func([A, C], seq(store(C, 0, 0.0), nest(total))))


def test_hoist_the_beginning_of_a_loop_that_may_not_run():
    A, C, n = buffer((8,)), buffer((1,), name="C"), tir.Var("n", "int32")

    def total(k):
        return store(C, 0, C[0] + A[k])

    before = func([A, C, n], loop(n, lambda k: seq(when(k == 0, store(C, 0, 0.0)), total(k))))
    check(
        tt.HoistIfThenElse(),
        before,
        func([A, C, n], seq(when(n > 0, store(C, 0, 0.0)), loop(n, total))),
    )


def test_hoist_let_binding():
    A, n, x = buffer((8,)), tir.Var("n", "int32"), tir.Var("x", "int32")
    before = func([A, n], loop(8, lambda i: tir.LetStmt(x, n * 2, store(A, i + x, 1.0))))
    check(
        tt.HoistExpression(),
        before,
        func([A, n], tir.LetStmt(x, n * 2, loop(8, lambda i: store(A, i + x, 1.0)))),
    )


def hoist(func, conditionals, lets=L.Never):
    options = {"hoisted_conditionals": conditionals.value, "hoisted_let_bindings": lets.value}
    return apply(tt.HoistExpression(), func, **{"tir.HoistExpression": options})


@T.prim_func
def mixed(A: T.Buffer((8,), "float32"), n: T.int32, m: T.int32):
    for i in range(8):
        if i < 4 and n > 3:
            A[i] = T.if_then_else(m > 2, T.float32(1), T.float32(2))


def run(func, n, m):
    A = np.zeros(8, "float32")
    interpret(func)(A, n, m)
    return A


@pytest.mark.parametrize("flags", [C.Never, C.IfElseExpr, C.BooleanExpression, C.All])
def test_hoisting_keeps_results(flags):
    after = hoist(mixed, flags)
    assert tir.analysis.verify_ssa(after)
    for n in (3, 4):
        for m in (2, 3):
            np.testing.assert_array_equal(run(after, n, m), run(mixed, n, m))


def test_hoist_boolean_expression():
    @T.prim_func
    def expected(A: T.Buffer((8,), "float32"), n: T.int32, m: T.int32):
        if n > 3:
            for i in range(8):
                if i < 4:
                    A[i] = T.if_then_else(m > 2, T.float32(1), T.float32(2))

    tvm.ir.assert_structural_equal(
        hoist(mixed, C.BooleanExpression), expected.with_attr("global_symbol", "mixed")
    )


def test_boolean_expressions_stay_unless_they_are_asked_for():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), n: T.int32):
        for i in range(8):
            if i < 4 and n > 3:
                A[i] = T.float32(1)

    tvm.ir.assert_structural_equal(hoist(before, C.IfElseExpr), before)
    assert not hoist(before, C.BooleanExpression).same_as(before)


def test_hoist_lets():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32"), n: T.int32):
        for i in range(8):
            m = n * 2
            if m > 3:
                A[i] = T.float32(1)

    @T.prim_func(private=True)
    def expected(A: T.Buffer((8,), "float32"), n: T.int32):
        m = n * 2
        if m > 3:
            for i in range(8):
                A[i] = T.float32(1)

    for lets in (L.RequiredByConditional, L.LetStmt):
        tvm.ir.assert_structural_equal(hoist(before, C.IfElseStmt, lets), expected)
    tvm.ir.assert_structural_equal(hoist(before, C.IfElseStmt), before)


def test_conditions_on_threads_move_on_demand():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        for i in range(8):
            if t < 4:
                A[i] = T.float32(1)

    @T.prim_func(private=True)
    def expected(A: T.Buffer((8,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        if t < 4:
            for i in range(8):
                A[i] = T.float32(1)

    tvm.ir.assert_structural_equal(apply(tt.HoistIfThenElse(), before), before)
    options = {"tir.HoistIfThenElse": {"support_block_scope_hoisting": True}}
    tvm.ir.assert_structural_equal(apply(tt.HoistIfThenElse(), before, **options), expected)


def test_hoist_lets_of_expressions():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            x = T.int32()
            A[i] = T.Let(x * x + i, where={x: n + 1})

    @T.prim_func(private=True)
    def expected(A: T.Buffer((8,), "int32"), n: T.int32):
        x: T.int32 = n + 1
        for i in range(8):
            A[i] = x * x + i

    tvm.ir.assert_structural_equal(hoist(before, C.Never, L.LetExpr), expected)
