# SPDX-License-Identifier: Apache-2.0
"""Makes selections evaluate only the side they choose where the other one may fail."""

from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import buffer, check, func, loop, store


def test_unsafe_select_evaluates_one_side():
    n = tir.Var("n", "int32")
    A, B = buffer((n,), name="A"), buffer((16,), name="B")
    x = tir.const(0.0, "float32")
    before = func([A, B], loop(16, lambda i: store(B, i, tir.Select(i > 0, A[i - 1], x))))
    expected = func([A, B], loop(16, lambda i: store(B, i, tir.if_then_else(i > 0, A[i - 1], x))))
    check(tt.RewriteUnsafeSelect(), before, expected)


def test_select_inside_of_the_buffer_is_safe():
    A, B = buffer((16,), name="A"), buffer((16,), name="B")
    before = func([A, B], loop(16, lambda i: store(B, i, tir.Select(A[i] > 0.0, A[i], A[0]))))
    check(tt.RewriteUnsafeSelect(), before, before)


def test_a_choice_guards_its_values_but_not_its_condition():
    n = tir.Var("n", "int32")
    A, B = buffer((n,), name="A"), buffer((16,), name="B")
    x = tir.const(0.0, "float32")

    def program(choose, condition, value):
        return func(
            [A, B],
            loop(
                16,
                lambda i: store(
                    B, i, choose(i > 0, tir.if_then_else(condition(i), value(i), x), x)
                ),
            ),
        )

    reads = (lambda i: A[i - 1] > 0.0, lambda i: x + 1.0)
    check(tt.RewriteUnsafeSelect(), program(tir.Select, *reads), program(tir.if_then_else, *reads))
    guarded = program(tir.Select, lambda i: i < n, lambda i: A[i])
    check(tt.RewriteUnsafeSelect(), guarded, guarded)


def test_a_function_that_may_do_anything_is_called_where_it_is_chosen():
    B, x = buffer((16,), name="B"), tir.const(0.0, "float32")

    def program(choose, call):
        return func([B], loop(16, lambda i: store(B, i, choose(i > 0, call, x))))

    opaque, pure = tir.call_extern("float32", "f"), tir.call_pure_extern("float32", "f")
    check(tt.RewriteUnsafeSelect(), program(tir.Select, opaque), program(tir.if_then_else, opaque))
    check(tt.RewriteUnsafeSelect(), program(tir.Select, pure), program(tir.Select, pure))
