# SPDX-License-Identifier: Apache-2.0
"""The type of a block's iterators."""

import numpy as np
from tvm import tir
from tvm.script import tir as T


def test_an_iterator_has_the_type_it_is_given():
    @T.prim_func
    def given(A: T.Buffer((8,), "int64"), B: T.Buffer((8, 4), "int64")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i, dtype="int64")
                A[vi] = vi * vi
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j], dtype="int64")
                B[vi, vj] = vi + vj

    types = []
    tir.stmt_functor.post_order_visit(
        given.body,
        lambda n: types.extend(v.var.dtype for v in n.iter_vars) if isinstance(n, tir.Block) else 0,
    )
    assert types == ["int64"] * 3
    a, b = np.zeros(8, "int64"), np.zeros((8, 4), "int64")
    tir.interpret(given)(a, b)
    np.testing.assert_array_equal(a, np.arange(8) ** 2)
    np.testing.assert_array_equal(b, np.add.outer(np.arange(8), np.arange(4)))
    assert "int64" in given.script()


def test_the_default_is_the_type_of_the_extent():
    @T.prim_func
    def wide(A: T.Buffer((8,), "float32")):
        for i in range(T.int64(8)):
            with T.block("A"):
                vi = T.axis.spatial(T.int64(8), i)
                A[vi] = 1.0

    assert "T.axis.spatial(T.int64(8), i)" in wide.script()


def test_a_pointer_has_the_type_it_is_given():
    buffer = tir.decl_buffer((4,), "float32")
    assert buffer.access_ptr("r").dtype == "handle"
    assert buffer.access_ptr("rw", ptr_type="int64").dtype == "int64"


def test_a_pointer_may_be_a_size_variable():
    pointers = T.ptr("float32", "shared"), T.ptr("float32", is_size_var=True)
    assert [isinstance(p, tir.SizeVar) for p in pointers] == [False, True]
    assert [p.type_annotation.storage_scope for p in pointers] == ["shared", "global"]
