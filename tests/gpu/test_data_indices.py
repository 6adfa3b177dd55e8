# SPDX-License-Identifier: Apache-2.0
"""Indices from data inside of kernels: what is outside is an error, and nothing is touched."""

import numpy as np
import pytest
import tvm
from tvm import te


def take(n, m, width, dtype="float32"):
    A = te.placeholder((n, width), dtype, name="A")
    index = te.placeholder((m,), "int32", name="index")
    return te.create_prim_func(
        [A, index, te.compute((m, width), lambda i, j: A[index[i], j], name="B")]
    )


def scatter(n, m):
    @tvm.script.tir.prim_func(private=True)
    def main(
        index: tvm.script.tir.Buffer((m,), "int32"), B: tvm.script.tir.Buffer((n,), "float32")
    ):
        T = tvm.script.tir
        for i in T.thread_binding(m, "threadIdx.x"):
            with T.block("B"):
                v = T.axis.spatial(m, i)
                B[index[v]] = T.float32(1)

    return main


def on_gpu(*arrays):
    return [tvm.runtime.tensor(a, tvm.cuda(0)) for a in arrays]


@pytest.mark.parametrize("bad", [-1, 100, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("width", [1, 64])
def test_reads_outside(bad, width):
    mod = tvm.compile(take(100, 50, width), "cuda")
    a = np.random.default_rng(0).standard_normal((100, width)).astype("float32")
    index = np.arange(50, dtype="int32")
    x, i, b = on_gpu(a, index, np.full((50, width), 77, "float32"))
    mod(x, i, b)
    np.testing.assert_array_equal(b.numpy(), a[:50])
    index[17] = bad
    i = on_gpu(index)[0]
    mod(x, i, b)
    message = rf"main_kernel: expected index 0 of buffer A from 0 to below 100, got {bad}"
    with pytest.raises(IndexError, match=message):
        b.numpy()
    # The error was said once, and the device goes on.
    np.testing.assert_array_equal(np.delete(b.numpy(), 17, 0), np.delete(a[:50], 17, 0))


def test_writes_outside():
    mod = tvm.compile(scatter(64, 32), "cuda")
    index = np.arange(32, dtype="int32")
    index[5] = 64
    i, b = on_gpu(index, np.zeros(64, "float32"))
    mod(i, b)
    with pytest.raises(IndexError, match="expected index 0 of buffer B from 0 to below 64, got 64"):
        tvm.cuda(0).sync()
    expected = np.zeros(64, "float32")
    expected[np.delete(index, 5)] = 1
    np.testing.assert_array_equal(b.numpy(), expected)


def test_a_library_that_was_exported(tmp_path):
    tvm.compile(take(100, 50, 4), "cuda").export_library(str(tmp_path / "k.so"))
    mod = tvm.runtime.load_module(str(tmp_path / "k.so"))
    x, i, b = on_gpu(np.zeros((100, 4), "float32"), np.full(50, -7, "int32"),
                     np.zeros((50, 4), "float32"))  # fmt: skip
    mod(x, i, b)
    with pytest.raises(IndexError, match="got -7"):
        b.numpy()
