# SPDX-License-Identifier: Apache-2.0
"""What is certain to touch memory that is not its own is not compiled; all else is."""

import numpy as np
import pytest
import tvm
from tvm import te, tir
from tvm.script import tir as T


def refused(func, message):
    with pytest.raises(IndexError, match=message):
        tvm.compile(func, "llvm")


def test_a_loop_that_is_too_long():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        for i in range(5):
            A[i] = 1.0

    refused(main, r"build: main: expected index 0 of buffer A from 0 to below 4, got 0 to 4, in A")


def test_a_constant():
    @T.prim_func
    def main(A: T.Buffer((4, 2), "float32"), B: T.Buffer((1,), "float32")):
        B[0] = A[3, 2]

    refused(main, r"expected index 1 of buffer A from 0 to below 2, got 2, in A\[3, 2\]")


def test_a_tensor_that_is_read_behind_its_end():
    A = te.placeholder((3,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    refused(te.create_prim_func([A, B]), "of buffer A from 0 to below 3, got 0 to 3")


def test_a_tensor_that_is_read_before_its_beginning():
    A = te.placeholder((8,), name="A")
    B = te.compute((4,), lambda i: A[i * 2 - 1] + 1.0, name="B")
    refused(te.create_prim_func([A, B]), "of buffer A from 0 to below 8, got -1 to 5")


def test_memory_of_the_function():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((7,))
        for i in range(8):
            B[i] = A[i]
        for i in range(7):
            A[i] = B[i]

    refused(main, "of buffer B from 0 to below 7")


def test_blocks_split_loops_and_lets():
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        for i, j in T.grid(4, 4):
            with T.block("A"):
                vi = T.axis.spatial(16, i * 4 + j)
                k: T.int32 = vi + 1
                A[k] = 1.0

    refused(main, "of buffer A from 0 to below 16, got 1 to 16")


def runs(func, *arrays):
    tvm.compile(func, "llvm")(*arrays)


def test_what_a_condition_guards_is_compiled():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            if i < 4:
                A[i] = 1.0
            B[i] = T.if_then_else(i < 4, A[i], 0.0)
        for i in range(2):
            for j in range(4):
                with T.block("where"):
                    T.where(i * 4 + j < 4)
                    vi = T.axis.spatial(4, i * 4 + j)
                    A[vi] = 2.0

    a, b = np.zeros(4, "float32"), np.zeros(8, "float32")
    runs(main, a, b)
    np.testing.assert_array_equal(a, 2)
    np.testing.assert_array_equal(b, [1] * 4 + [0] * 4)


def test_what_may_not_run_is_compiled():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), n: T.int32):
        for i in range(0):
            A[i + 4] = 1.0
        for i in range(n):
            A[i + 4] = 1.0
        for i in range(8):
            if i == 4:
                break
            A[i] = 3.0

    a = np.zeros(4, "float32")
    runs(main, a, 0)
    np.testing.assert_array_equal(a, 3)


def test_ranges_that_are_not_exact_are_compiled():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        for i in range(16):
            A[i - i // 4 * 4] = T.Cast("float32", i)
        for i in range(8):
            A[i % 4] = A[i % 4] + A[T.min(i, 3)]

    tvm.compile(main, "llvm")


def test_the_address_of_the_end_is_compiled():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "int32")):
        B[0] = T.isnullptr(T.address_of(A[4]))

    b = np.ones(1, "int32")
    runs(main, np.zeros(4, "float32"), b)
    assert b[0] == 0


def test_parts_that_are_shared_are_looked_at_once():
    A = tir.decl_buffer((4,), "int32", name="A")
    x = A[0]
    for _ in range(200):  # written out, 2^200 times A[0]
        x = x + x
    p = tir.Var("a", "handle")
    main = tir.PrimFunc([p], tir.BufferStore(A, x, [4]), buffer_map={p: A})
    with pytest.raises(IndexError, match="of buffer A from 0 to below 4, got 4"):
        tvm.compile(main, "llvm")
