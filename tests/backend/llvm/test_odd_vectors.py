# SPDX-License-Identifier: Apache-2.0
"""Vectors whose number of lanes is no power of two: one load with a mask, where there are masks."""

import ctypes
import mmap

import numpy as np
import pytest
import tvm
from tvm.script import tir as T
from tvm.target import Target

AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"


def doubled(lanes, dtype):
    @T.prim_func
    def func(A: T.Buffer((lanes,), dtype), B: T.Buffer((lanes,), dtype)):
        for i in T.vectorized(lanes):
            B[i] = A[i] + A[i]

    return func


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("lanes", [3, 5, 7, 11, 14, 15, 20])
def test_odd_vectors(lanes, dtype):
    """At the end of a page behind which there is none, and beside what others write."""
    libc = ctypes.CDLL(None)
    page, bytes_ = mmap.PAGESIZE, lanes * np.dtype(dtype).itemsize
    memory = mmap.mmap(-1, 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(start + page), page, 0) == 0
    a = np.frombuffer(memory, dtype, lanes, page - bytes_)
    a[:] = np.arange(1, lanes + 1)
    b = np.full(lanes + 1, 77, dtype)
    built = tvm.build(doubled(lanes, dtype), target="llvm")
    built(tvm.runtime.from_dlpack(a), tvm.runtime.from_dlpack(b[:lanes]))
    np.testing.assert_array_equal(b, [*(2 * a), 77])
    libc.mprotect(ctypes.c_void_p(start + page), page, 3)


@pytest.mark.parametrize("lanes, masked", [(14, True), (7, True), (16, False), (3, False)])
def test_odd_vectors_have_masks(lanes, masked):
    built = tvm.compile(doubled(lanes, "float32"), Target(AVX512))
    text = built.inspect_source("asm")
    assert ("{%k" in text) == masked
