# SPDX-License-Identifier: Apache-2.0
"""A maximum over nothing but -inf is -inf, however its program starts."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import te, tir
from tvm.ir import assert_structural_equal
from tvm.script import tir as T

INF = float("inf")


def after(func):
    return tir.transform.StartAtInfinity()(tvm.IRModule({"main": func}))["main"]


def test_decomposed_reduction():
    @T.prim_func
    def before(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = T.float32(-3.4028234663852886e38)
        for i, k in T.grid(4, 8):
            B[i] = T.max(B[i], A[i, k])

    @T.prim_func
    def expected(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = T.float32("-inf")
        for i, k in T.grid(4, 8):
            B[i] = T.max(B[i], A[i, k])

    assert_structural_equal(after(before), expected.with_attr("global_symbol", "before"))


def test_margin_of_a_window():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        P = T.alloc_buffer((10,))
        for i in range(10):
            P[i] = T.if_then_else(1 <= i and i < 9, A[i - 1], T.max_value("float32"))
        for i, k in T.grid(8, 3):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.max_value("float32")
                B[vi] = T.min(B[vi], P[vi + vk])

    @T.prim_func
    def expected(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        P = T.alloc_buffer((10,))
        for i in range(10):
            P[i] = T.if_then_else(1 <= i and i < 9, A[i - 1], T.float32("inf"))
        for i, k in T.grid(8, 3):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32("inf")
                B[vi] = T.min(B[vi], P[vi + vk])

    assert_structural_equal(after(before), expected.with_attr("global_symbol", "before"))


def test_numbers_that_are_no_start_stay():
    @T.prim_func
    def clamped(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = T.max(A[i], T.min_value("float32"))

    @T.prim_func
    def used_otherwise(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = T.min_value("float32")
        for i in range(8):
            B[i] = T.max(B[i], A[i])
        for i in range(8):
            B[i] = B[i] * T.float32(2)

    @T.prim_func
    def integers(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
        B[0] = T.min_value("int32")
        for i in range(8):
            B[0] = T.max(B[0], A[i])

    for func in (clamped, used_otherwise, integers):
        assert after(func).same_as(func)


def maximum(n, m, dtype):
    a, k = te.placeholder((n, m), dtype, "A"), te.reduce_axis((0, m), "k")
    return te.create_prim_func([a, te.compute((n,), lambda i: te.max(a[i, k], k), "B")])


@tvm.testing.requires_llvm
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("decompose", [False, True])
@pytest.mark.parametrize("shape", [(3, 5), (2, 300), (1, 5000)])
def test_maximum_of_infinities(shape, decompose, dtype):
    func = maximum(*shape, dtype)
    if decompose:
        sch = tir.Schedule(func)
        sch.decompose_reduction("B", sch.get_loops("B")[1])
        func = sch.mod["main"]
    a = np.full(shape, -INF, dtype)
    b = tvm.runtime.empty((shape[0],), dtype)
    tvm.compile(func, target="llvm")(tvm.runtime.tensor(a), b)
    np.testing.assert_array_equal(b.numpy(), a.max(1))
