# SPDX-License-Identifier: Apache-2.0
"""Visitors and mutators written in Python."""

import pytest
import tvm
from tvm import tir

from tests.tir.transform.build_ir import buffer, func, loop, store, when


def _program():
    A = tir.decl_buffer((8,), "int32", name="A")
    i = tir.Var("i", "int32")
    return A, tir.For(i, 0, 8, tir.ForKind.SERIAL, tir.BufferStore(A, A[i] * 3 + 1, [i]))


def test_visitor_counts():
    class Count(tir.PyStmtExprVisitor):
        def __init__(self):
            self.loops, self.loads, self.numbers = 0, 0, []

        def visit_for_(self, op):
            self.loops += 1
            super().visit_for_(op)

        def visit_buffer_load_(self, op):
            self.loads += 1
            self.default_visit(op)

        def visit_int_imm_(self, op):
            self.numbers.append(op.value)

    count = Count()
    count.visit_stmt(_program()[1])
    assert count.loops == 1 and count.loads == 1
    assert {3, 1, 8, 0} <= set(count.numbers)


def test_mutator_rewrites_and_shares():
    class Triple(tir.PyStmtExprMutator):
        def visit_mul_(self, op):
            return tir.Mul(self.visit_expr(op.a), tir.const(7, "int32"))

    A, loop = _program()
    result = Triple().visit_stmt(loop)
    i = loop.loop_var
    expected = tir.For(i, 0, 8, tir.ForKind.SERIAL, tir.BufferStore(A, A[i] * 7 + 1, [i]))
    tvm.ir.assert_structural_equal(result, expected)
    assert result.body.buffer.same_as(A)
    assert tir.PyStmtExprMutator().visit_stmt(loop).same_as(loop)


def test_a_buffer_changes_once_and_everywhere():
    class Grow(tir.PyStmtExprMutator):
        def visit_int_imm_(self, op):
            return tir.const(16, "int32") if op.value == 8 else op

    A, loop = _program()
    result = Grow().visit_stmt(loop)
    assert result.extent == 16 and result.body.buffer.shape[0] == 16
    assert result.body.value.a.a.buffer.same_as(result.body.buffer)


def test_the_decorator_spelling():
    @tir.functor.mutator
    class Same(tir.PyStmtExprMutator):
        pass

    loop = _program()[1]
    assert Same().visit_stmt(loop).same_as(loop)


def test_renew_defs_makes_everything_new():
    A = buffer((4,))
    before = func([A], loop(4, lambda i: when(i < 2, store(A, i, 1.0))))
    after = tir.stmt_functor.renew_defs(before)
    tvm.ir.assert_structural_equal(before, after)
    assert not after.body.loop_var.same_as(before.body.loop_var)
    assert not after.params[0].same_as(before.params[0])
    assert after.body.body.then_case.buffer.same_as(after.buffer_map[after.params[0]])


def test_ir_transform_pre_and_post():
    A, x = buffer((4,), "int32"), tir.Var("x", "int32")
    stmt = store(A, 0, x + 1)
    doubled = tir.stmt_functor.ir_transform(
        stmt, None, lambda op: op * 2 if op.same_as(x) else None, ["tir.Var"]
    )
    assert isinstance(doubled.value.a, tir.Mul)
    kept = tir.stmt_functor.ir_transform(stmt, lambda op: op, lambda op: 1 / 0, ["tir.BufferStore"])
    assert kept.same_as(stmt)
    with pytest.raises(
        ValueError, match="expected the type key of a node in only_enable, got 'tir.Nothing'"
    ):
        tir.stmt_functor.ir_transform(stmt, None, None, ["tir.Nothing"])
