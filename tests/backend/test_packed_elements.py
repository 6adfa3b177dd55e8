# SPDX-License-Identifier: Apache-2.0
"""Elements below a byte are packed, whatever their width; those that share a byte are safe."""

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import tir

FLOATS = ["float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"]
VALUES = np.array([0.1, 0.5, 1, 1.5, -2, 3, 7, -30, 0.0], "float32")


def _through(dtype, n, kind):
    """B = float32(C) with C = dtype(A), a buffer of the function."""
    A, B = (tir.decl_buffer((n,), "float32", name=name) for name in "AB")
    C = tir.decl_buffer((n,), dtype, name="C")
    a, b = tir.Var("a", "handle"), tir.Var("b", "handle")

    def loop(make):
        i = tir.Var("i", "int32")
        return tir.For(i, 0, n, kind, make(i))

    body = tir.SeqStmt(
        [
            loop(lambda i: tir.BufferStore(C, A[i].astype(dtype), [i])),
            loop(lambda i: tir.BufferStore(B, C[i].astype("float32"), [i])),
        ]
    )
    body = tir.Allocate(C.data, dtype, [n], True, tir.DeclBuffer(C, body))
    return tir.PrimFunc([a, b], body, buffer_map={a: A, b: B})


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("kind", ["SERIAL", "VECTORIZED", "PARALLEL", "UNROLLED"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_small_floats_in_memory(dtype, kind, target):
    n = 37  # ends inside a byte
    func = _through(dtype, n, getattr(tir.ForKind, kind))
    a, b = np.resize(VALUES, n), np.zeros(n, "float32")
    tvm.compile(func, target=target)(a, b)
    np.testing.assert_array_equal(b, a.astype(getattr(ml_dtypes, dtype)).astype("float32"))


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("sign", ["int", "uint"])
def test_integers_of_every_width(sign, bits, target):
    func = _through(f"{sign}{bits}", 50, tir.ForKind.SERIAL)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if sign == "int" else (0, (1 << bits) - 1)
    a = np.random.default_rng(bits).integers(low, high + 1, 50).astype("float32")
    b = np.zeros(50, "float32")
    tvm.compile(func, target=target)(a, b)
    np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("dtype", ["float6_e2m3fn", "int4"])
def test_arguments_are_packed(dtype):
    """Tensors of the runtime have the layout that kernels use."""
    n = 11
    A = tir.decl_buffer((n,), dtype, name="A")
    B = tir.decl_buffer((n,), dtype, name="B")
    a, b, i = tir.Var("a", "handle"), tir.Var("b", "handle"), tir.Var("i", "int32")
    body = tir.For(i, 0, n, tir.ForKind.SERIAL, tir.BufferStore(B, A[n - 1 - i], [i]))
    func = tir.PrimFunc([a, b], body, buffer_map={a: A, b: B})
    values = np.arange(n).astype(getattr(ml_dtypes, dtype))
    source, target = (tvm.runtime.empty((n,), dtype) for _ in range(2))
    tvm.compile(func, target="llvm")(source.copyfrom(values), target)
    got = target.numpy().astype("float32")
    np.testing.assert_array_equal(got, values[::-1].astype("float32"))


@pytest.mark.parametrize(("dtype", "launches"), [("int8", 2), ("int4", 1), ("float4_e2m1fn", 1)])
def test_threads_do_not_share_bytes(dtype, launches):
    """The loop that stores elements below a byte is serial."""
    func = _through(dtype, 4096, tir.ForKind.PARALLEL)
    code = tvm.compile(func, target="llvm").mod.inspect_source("ll")
    assert code.count("load ptr, ptr @__TVMBackendParallelLaunch") == launches
