# SPDX-License-Identifier: Apache-2.0
"""Vectors whose lanes are known distances apart are loaded at once, and no gather."""

import numpy as np
import pytest
import tvm
from tvm import te
from tvm.target import Target


def compiled(n, index, size):
    a = te.placeholder((size,), "float32", "A")
    b = te.compute((n,), lambda i: a[index(i)], "B")
    sch = tvm.tir.Schedule(te.create_prim_func([a, b]))
    (i,) = sch.get_loops(sch.get_block("B"))
    sch.vectorize(sch.split(i, [None, 16])[1])
    return sch.mod


@pytest.mark.parametrize(
    "index, size",
    [
        (lambda i: i // 2, 32),
        (lambda i: i // 4, 16),
        (lambda i: i // 16 * 16 + i % 4, 64),
    ],
)
def test_near_loads(index, size):
    mod = compiled(64, index, size)
    data, out = np.random.rand(size).astype("float32"), np.zeros(64, "float32")
    ran = tvm.runtime.tensor(out)
    tvm.compile(mod, target="llvm")(tvm.runtime.tensor(data), ran)
    np.testing.assert_array_equal(ran.numpy(), [data[index(i)] for i in range(64)])
    plain = tvm.compile(mod, target=Target("llvm -mcpu=skylake-avx512"))
    assert "gather" not in plain.mod.inspect_source("ll")


def test_near_loads_only_of_what_is_near():
    mod = compiled(64, lambda i: i % 16 * 64 // 3 + i // 16 * 1024, 4096)
    data, out = np.random.rand(4096).astype("float32"), tvm.runtime.empty((64,), "float32")
    tvm.compile(mod, target="llvm")(tvm.runtime.tensor(data), out)
    want = [data[i % 16 * 64 // 3 + i // 16 * 1024] for i in range(64)]
    np.testing.assert_array_equal(out.numpy(), want)
