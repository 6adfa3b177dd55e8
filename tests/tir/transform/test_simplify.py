# SPDX-License-Identifier: Apache-2.0
"""Simplifies every expression with what loops and conditions around it say."""

import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, seq, store, when


def test_simplify_uses_loops_and_conditions():
    A, n = buffer((64,)), tir.Var("n", "int32")
    before = func([A, n], loop(16, lambda i: when(i < 20, store(A, tir.floordiv(i * 4, 4), 1.0))))
    check(tt.Simplify(), before, func([A, n], loop(16, lambda i: store(A, i, 1.0))))
    before = func([A, n], when(n < 4, when(n < 8, store(A, 0, 1.0), store(A, 0, 2.0))))
    check(tt.Simplify(), before, func([A, n], when(n < 4, store(A, 0, 1.0))))


def test_what_holds_in_a_loop_does_not_hold_after_it():
    A, n = buffer((64,)), tir.Var("n", "int32")
    before = func([A, n], seq(loop(n, lambda i: store(A, i, 1.0)), when(n > 0, store(A, 0, 2.0))))
    assert isinstance(apply(tt.Simplify(), before).body[1], tir.IfThenElse)


def test_a_call_stays_where_nobody_uses_its_result():
    A, x = buffer((4,)), tir.Var("x", "int32")
    before = func([A], tir.LetStmt(x, tir.call_extern("int32", "f"), store(A, 0, 1.0)))
    check(tt.Simplify(), before, before)


def test_simplify_keeps_the_axes_of_blocks():
    """Where nothing can happen anything is true of an axis; its definition stays."""

    @T.prim_func
    def before(A: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("b"):
                v = T.axis.spatial(1, 0)
                w = T.axis.spatial(8, i)
                T.where(T.bool(False))
                T.reads()
                T.writes(A[w])
                A[w] = v + 1

    after = tvm.tir.transform.Simplify()(tvm.IRModule({"main": before}))["main"]
    block = after.body.block.body.body.block
    assert all(isinstance(axis.var, tvm.tir.Var) for axis in block.iter_vars)
