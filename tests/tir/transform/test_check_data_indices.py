# SPDX-License-Identifier: Apache-2.0
"""Indices that come from data are checked where nothing proves them inside."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import te, tir
from tvm.script import tir as T


def after(func):
    return tir.transform.CheckDataIndices()(tvm.IRModule({"main": func}))["main"]


def test_indices_that_are_inside_cost_nothing():
    @T.prim_func
    def clipped(A: T.Buffer((16, 4), "float32"), I: T.Buffer((4,), "int32"), B: T.Buffer((4, 4))):
        for i, j in T.grid(4, 4):
            B[i, j] = A[T.max(T.min(I[i], 15), 0), j]

    @T.prim_func
    def guarded(A: T.Buffer((16,), "float32"), I: T.Buffer((4,), "int32"), B: T.Buffer((4,))):
        for i in range(4):
            B[i] = T.if_then_else(0 <= I[i] and I[i] < 16, A[I[i]], T.float32(0))

    @T.prim_func
    def plain(A: T.Buffer((16,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i * 3]

    for func in (clipped, guarded, plain):
        assert after(func).same_as(func)


def test_checks_leave_loops_that_they_do_not_depend_on():
    @T.prim_func
    def rows(A: T.Buffer((16, 64), "float32"), I: T.Buffer((4,), "int32"), B: T.Buffer((4, 64))):
        for i, j in T.grid(4, 64):
            B[i, j] = A[I[i], j]

    outer = after(rows).body
    check, inner = outer.body.seq
    assert isinstance(check, tir.IfThenElse) and isinstance(inner, tir.For)
    assert isinstance(inner.body, tir.BufferStore)


def gather(n):
    a, i = te.placeholder((n, 8), name="A"), te.placeholder((5,), "int32", "I")
    return te.create_prim_func([a, i, te.compute((5, 8), lambda k, j: a[i[k], j], "B")])


@tvm.testing.requires_llvm
@pytest.mark.parametrize("size", [16, te.var("n")])
def test_index_outside_raises(size):
    module = tvm.compile(gather(size), target="llvm")
    a, i = np.random.rand(16, 8).astype("float32"), np.array([0, 15, 3, 3, 7], "int32")
    b = tvm.runtime.tensor(np.full((5, 8), -1, "float32"))
    module(tvm.runtime.tensor(a), tvm.runtime.tensor(i), b)
    np.testing.assert_array_equal(b.numpy(), a[i])
    for outside in (16, -1, 2**31 - 1, -(2**31)):
        i[2] = outside
        with pytest.raises(
            IndexError, match=f"index 0 of buffer A from 0 to below 16, got {outside}"
        ):
            module(tvm.runtime.tensor(a), tvm.runtime.tensor(i), b)


@tvm.testing.requires_llvm
def test_store_outside_raises_in_parallel_loops():
    @T.prim_func
    def scatter(I: T.Buffer((1000,), "int32"), B: T.Buffer((1000,), "int32")):
        for i in T.parallel(1000):
            B[I[i]] = i

    module = tvm.compile(scatter, target="llvm")
    i, b = np.arange(1000, dtype="int32")[::-1].copy(), tvm.runtime.empty((1000,), "int32")
    module(tvm.runtime.tensor(i), b)
    np.testing.assert_array_equal(b.numpy(), i)
    i[500] = 1000
    with pytest.raises(IndexError, match="index 0 of buffer B"):
        module(tvm.runtime.tensor(i), b)


@tvm.testing.requires_llvm
def test_lookup_of_a_lookup():
    @T.prim_func
    def twice(A: T.Buffer((4,), "int32"), I: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            B[i] = A[A[I[i]]]

    module = tvm.compile(twice, target="llvm")
    run = lambda a, i: module(
        tvm.runtime.tensor(np.array(a, "int32")),
        tvm.runtime.tensor(np.array(i, "int32")),
        tvm.runtime.empty((4,), "int32"),
    )
    run([3, 2, 1, 0], [0, 1, 2, 3])
    for a, i in (([3, 9, 1, 0], [0, 1, 2, 3]), ([3, 2, 1, 0], [0, 1, 2, -3])):
        with pytest.raises(IndexError):
            run(a, i)


def test_a_kernel_goes_on_without_what_is_outside():
    @T.prim_func(private=True)
    def before(A: T.Buffer((16,), "float32"), I: T.Buffer((4,), "int32"), B: T.Buffer((4,))):
        i = T.launch_thread("threadIdx.x", 4)
        B[i] = A[I[i]]

    @T.prim_func(private=True)
    def expected(A: T.Buffer((16,), "float32"), I: T.Buffer((4,), "int32"), B: T.Buffer((4,))):
        i = T.launch_thread("threadIdx.x", 4)
        if not T.likely(0 <= I[i] and I[i] < 16):
            T.call_intrin(
                "int32",
                "tir.tvm_raise_error",
                "IndexError",
                "expected index 0 of buffer A from 0 to below %lld, got %lld",
                T.int64(16),
                T.Cast("int64", I[i]),
            )
        else:
            B[i] = A[I[i]]

    tvm.ir.assert_structural_equal(after(before), expected)


def test_a_check_before_a_loop_that_may_have_no_iterations():
    @T.prim_func
    def before(a: T.handle, A: T.Buffer((4,), "float32"), I: T.Buffer((1,), "int32")):
        n = T.int32()
        B = T.match_buffer(a, (n,))
        for i in range(n):
            B[i] = A[I[0]]

    built = tvm.compile(before, target=tvm.testing.host_target())
    A, result = np.arange(4, dtype="float32"), np.zeros(3, "float32")
    built(result, A, np.array([2], "int32"))
    np.testing.assert_array_equal(result, 2)
    built(np.zeros(0, "float32"), A, np.array([9], "int32"))
    with pytest.raises(IndexError):
        built(result, A, np.array([9], "int32"))
