# SPDX-License-Identifier: Apache-2.0
"""Packed calls, assertions and large allocations."""

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, seq, store, when


def _raise(kind, text):
    return tir.Evaluate(tir.call_intrin("int32", "tir.tvm_raise_error", kind, "%s", text))


@pytest.mark.parametrize("message, kind, text", [
    ("ValueError: n must be positive", "ValueError", "n must be positive"),
    ("n must be positive", "RuntimeError", "n must be positive"),
    ("note: n must be positive", "RuntimeError", "note: n must be positive"),
])  # fmt: skip
def test_assertion_becomes_an_error(message, kind, text):
    A, n = buffer((4,)), tir.Var("n", "int32")
    before = func([A, n], tir.AssertStmt(n > 0, tir.StringImm(message), store(A, 0, 1.0)))
    expected = func(
        [A, n], seq(when(tir.Not(tir.likely(n > 0)), _raise(kind, text)), store(A, 0, 1.0))
    )
    check(tt.LowerTVMBuiltin(), before, expected)


@pytest.mark.parametrize("elements, on_stack", [(64, True), (1 << 20, False), ("n", False)])
def test_large_allocations_come_from_the_workspace(elements, on_stack):
    n = tir.Var("n", "int32")
    A, B = buffer((4,)), buffer((n if elements == "n" else elements,), name="B")
    body = tir.DeclBuffer(B, seq(store(B, 0, A[0]), store(A, 1, B[0])))
    before = func(
        [A, n],
        tir.Allocate(
            B.data, "float32", [n if elements == "n" else elements], tir.const(True), body
        ),
    )
    result = apply(tt.LowerTVMBuiltin(), before).body
    assert isinstance(result, tir.Allocate if on_stack else tir.LetStmt)
    if not on_stack:
        assert result.value.op.name == "tir.TVMBackendAllocWorkspace"
        assert result.body[-1].value.op.name == "tir.TVMBackendFreeWorkspace"


def test_packed_call_puts_arguments_on_the_stack():
    x = tir.Var("x", "float32")
    before = func([x], tir.Evaluate(tir.call_packed("f", 1, x, "text")))
    body = apply(tt.LowerTVMBuiltin(), before).body
    assert body.value.op.name == "tir.tvm_stack_alloca" and int(body.value.args[1]) == 4
    *sets, call = body.body
    assert len(sets) == 9 and call.value.op.name == "tir.tvm_call_packed_lowered"
    types = [int(s.value.args[3]) for s in sets[::3]]
    assert types == [1, 3, 8], "int, float, str"


def test_parallel_bodies_have_their_own_stack():
    before = func([], loop(4, lambda i: tir.Evaluate(tir.call_packed("f", i)), kind="parallel"))
    body = apply(tt.LowerTVMBuiltin(), before).body
    assert isinstance(body, tir.For) and isinstance(body.body, tir.LetStmt)


def test_tensor_argument_is_built_on_the_stack():
    A = buffer((2, 3))
    shape = tir.tvm_stack_make_shape(2, 3)
    array = tir.tvm_stack_make_array(A.data, shape, 0, 2, "float32", 0)
    body = apply(tt.LowerTVMBuiltin(), func([A], tir.Evaluate(tir.call_packed("f", array)))).body
    kinds = []
    while isinstance(body, tir.LetStmt):
        kinds.append(str(body.value.args[0].value))
        body = body.body
    assert sorted(kinds) == ["array", "shape", "tvm_ffi_any"]


def test_packed_call_in_a_branch_of_an_expression_is_refused():
    A = buffer((4,), "int32")
    n = tir.Var("n", "int32")
    value = tir.if_then_else(n > 0, tir.call_packed("f", 1), 0)
    with pytest.raises(
        ValueError, match="expected the values of if_then_else without packed calls"
    ):
        apply(tt.LowerTVMBuiltin(), func([A, n], store(A, 0, value)))


def test_an_error_gives_the_workspace_back():
    n = tir.Var("n", "int32")
    B = buffer((1 << 20,), name="B")
    check_n = tir.AssertStmt(n > 0, tir.StringImm("n"), store(B, 0, 1.0))
    body = tir.Allocate(B.data, "float32", [1 << 20], tir.const(True), tir.DeclBuffer(B, check_n))
    result = apply(tt.LowerTVMBuiltin(), func([n], body))
    failing = result.body.body[1].body[0].then_case
    assert [s.value.op.name for s in failing] == [
        "tir.TVMBackendFreeWorkspace",
        "tir.tvm_raise_error",
    ]


def test_lists_of_values():
    """Arguments are lent, results are owned by the list, and what an item held is released.

    In front of a list is its length, which has to be enough for the items that are named.
    """

    @T.prim_func
    def before(r: T.handle, c: T.handle):
        T.anylist_setitem_call_packed(r, 2, "g", T.anylist_getitem(c, 1), T.int64(7))
        T.anylist_resetitem(r, 0)

    @T.prim_func
    def expected(r: T.handle, c: T.handle):
        if T.tvm_struct_get(c, -1, 13, "int64") < T.int64(2):
            T.call_intrin(
                "int32",
                "tir.tvm_raise_error",
                "ValueError",
                "expected a list 'c' of at least %lld values, got %lld: it was made for other code",
                T.int64(2),
                T.tvm_struct_get(c, -1, 13, "int64"),
            )
        if T.tvm_struct_get(r, -1, 13, "int64") < T.int64(3):
            T.call_intrin(
                "int32",
                "tir.tvm_raise_error",
                "ValueError",
                "expected a list 'r' of at least %lld values, got %lld: it was made for other code",
                T.int64(3),
                T.tvm_struct_get(r, -1, 13, "int64"),
            )
        stack_args: T.handle = T.tvm_stack_alloca("tvm_ffi_any", 3)
        T.tvm_struct_set(stack_args, 0, 11, T.tvm_struct_get(c, 1, 11, "int32"))
        T.tvm_struct_set(stack_args, 0, 12, T.tvm_struct_get(c, 1, 12, "int32"))
        T.tvm_struct_set(stack_args, 0, 13, T.tvm_struct_get(c, 1, 13, "int64"))
        T.tvm_struct_set(stack_args, 1, 11, 1)
        T.tvm_struct_set(stack_args, 1, 12, 0)
        T.tvm_struct_set(stack_args, 1, 13, T.int64(7))
        T.call_intrin("void", "tir.tvm_call_packed_lowered", "g", stack_args, 0, 2)
        if T.tvm_struct_get(r, 2, 11, "int32") >= 64:
            T.call_extern("int32", "TVMFFIObjectDecRef", T.tvm_struct_get(r, 2, 13, "handle"))
        T.tvm_struct_set(r, 2, 11, T.tvm_struct_get(stack_args, 2, 11, "int32"))
        T.tvm_struct_set(r, 2, 12, T.tvm_struct_get(stack_args, 2, 12, "int32"))
        T.tvm_struct_set(r, 2, 13, T.tvm_struct_get(stack_args, 2, 13, "int64"))
        if T.tvm_struct_get(r, 0, 11, "int32") >= 64:
            T.call_extern("int32", "TVMFFIObjectDecRef", T.tvm_struct_get(r, 0, 13, "handle"))
        T.tvm_struct_set(r, 0, 11, 0)
        T.tvm_struct_set(r, 0, 12, 0)
        T.tvm_struct_set(r, 0, 13, T.int64(0))

    after = tt.LowerTVMBuiltin()(tvm.IRModule({"main": before}))["main"]
    tvm.ir.assert_structural_equal(after.body, expected.body, map_free_vars=True)
