# SPDX-License-Identifier: Apache-2.0
"""Loads of some lanes of a vector that is wider than a register."""

import numpy as np
import pytest
import tvm
from tvm.script import tir as T

CPUS = ["", " -mcpu=x86-64", " -mcpu=x86-64-v3"]


@pytest.mark.parametrize("lanes", [16, 24])
@pytest.mark.parametrize("first", [4, 8])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("cpu", CPUS)
def test_parts_that_are_left_out(dtype, first, lanes, cpu):
    """Lanes from `first` on are read where n says so: which others are not is known."""

    @T.prim_func
    def func(
        A: T.Buffer((lanes,), dtype), B: T.Buffer((lanes,), dtype), N: T.Buffer((1,), "int32")
    ):
        for i in T.vectorized(lanes):
            B[i] = T.if_then_else(N[0] > 0 and i >= first, A[i], T.Cast(dtype, 3))

    a = np.arange(1, lanes + 1).astype(dtype)
    module = tvm.build(func, target="llvm" + cpu)
    for n in (0, 1):
        b = tvm.runtime.tensor(np.zeros(lanes, dtype))
        module(tvm.runtime.tensor(a), b, tvm.runtime.tensor(np.array([n], "int32")))
        expected = np.where((np.arange(lanes) >= first) & (n > 0), a, 3)
        np.testing.assert_array_equal(b.numpy(), expected)


@pytest.mark.parametrize("cpu", CPUS)
def test_margins(cpu):
    """What pads the lines of an image in blocks of channels."""

    @T.prim_func
    def func(A: T.Buffer((14, 14, 8), "float32"), B: T.Buffer((16, 16, 8), "float32")):
        for y, x, c in T.grid(T.int64(16), T.int64(16), T.int64(8)):
            with T.block("B"):
                vy, vx, vc = T.axis.remap("SSS", [y, x, c])
                B[vy, vx, vc] = T.if_then_else(
                    1 <= vy and vy < 15 and 1 <= vx and vx < 15, A[vy - 1, vx - 1, vc], 0.0
                )

    a = np.random.default_rng(0).normal(size=(14, 14, 8)).astype("float32")
    b = tvm.runtime.tensor(np.full((16, 16, 8), np.nan, "float32"))
    tvm.build(func, target="llvm -num-cores=1" + cpu)(tvm.runtime.tensor(a), b)
    np.testing.assert_array_equal(b.numpy(), np.pad(a, [(1, 1), (1, 1), (0, 0)]))
