# SPDX-License-Identifier: Apache-2.0
"""The whole stack in seconds: a tensor expression compiled, called, exported and loaded again."""

import numpy as np
import tvm
import tvm.testing
from tvm import te


def _sigmoid(m, n):
    A = te.placeholder((m, n), name="A", dtype="float32")
    C = te.compute((m, n), lambda i, j: 1 / (1 + tvm.tir.exp(-A[i, j])), name="C")
    return te.create_prim_func([A, C])


def test_sigmoid(tmp_path):
    a = np.random.default_rng(0).uniform(-5, 5, (64, 100)).astype("float32")
    expected = 1 / (1 + np.exp(-a.astype("float64")))
    dev = tvm.device("llvm", 0)
    x, y = tvm.runtime.tensor(a, device=dev), tvm.runtime.empty(a.shape, "float32", dev)
    mod = tvm.build(_sigmoid(*a.shape), target=tvm.testing.host_target())
    mod(x, y)
    dev.sync()
    np.testing.assert_allclose(y.numpy(), expected, rtol=3e-7)

    path = str(tmp_path / "sigmoid.so")
    mod.export_library(path)
    z = tvm.runtime.empty(a.shape, "float32", dev)
    tvm.runtime.load_module(path)(x, z)
    np.testing.assert_array_equal(z.numpy(), y.numpy())


def test_matmul():
    n, m, l = 33, 17, 65
    A = te.placeholder((n, l), name="A")
    B = te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    mod = tvm.compile(te.create_prim_func([A, B, C]), target=tvm.testing.host_target())
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(n, l)).astype("float32"), rng.normal(size=(l, m)).astype("float32")
    c = np.zeros((n, m), "float32")
    mod(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)
