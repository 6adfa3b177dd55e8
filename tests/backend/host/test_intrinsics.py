# SPDX-License-Identifier: Apache-2.0
"""Operators of their own kind: fixed-point products, dot products of bytes, traced calls, atomic
sums."""

import kernels
import numpy as np
import pytest
import tvm
import tvm_ffi
from kernels import buffer, call, const, loop, module, run
from tvm import te, tir


def exact_product(x, y, shift):
    """x y 2^-shift in integers of any size, halves up, as int32."""
    result = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        product = a * b
        value = (product + (1 << (shift - 1))) >> shift if shift > 0 else product << -shift
        result.append((value + 2**31) % 2**32 - 2**31)
    return np.array(result, "int32")


def values(n=256):
    rng = np.random.default_rng(0)
    edges = np.array([0, 1, -1, 2**31 - 1, -(2**31), 3, -3, 1 << 30], "int32")
    return np.concatenate([edges, rng.integers(-(2**31), 2**31, n - 8).astype("int32")])


@pytest.mark.parametrize("q,s", [(31, 0), (31, 5), (31, -7), (15, 0), (0, 0), (2, 5), (31, -32)])
def test_q_multiply_shift(q, s, target):
    n = 256
    x, y = values(), values()[::-1].copy()
    A, B = (te.placeholder((n,), "int32", name=name) for name in "AB")
    C = te.compute((n,), lambda i: tir.q_multiply_shift(A[i], B[i], q, s), name="C")
    z = np.zeros(n, "int32")
    tvm.build(te.create_prim_func([A, B, C]), target=target)(x, y, z)
    np.testing.assert_array_equal(z, exact_product(x, y, q - s))


@pytest.mark.parametrize("is_left,is_right", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_q_multiply_shift_per_axis(is_left, is_right):
    n = 256
    x, y = values() >> 8, values()[::-1].copy()
    left, right = np.arange(n, dtype="int32") % 8, np.arange(n, dtype="int32") % 5
    tensors = [te.placeholder((n,), "int32", name=name) for name in "ABLR"]
    A, B, L, R = tensors
    C = te.compute(
        (n,),
        lambda i: tir.q_multiply_shift_per_axis(
            A[i], B[i], L[i], R[i], tir.const(31, "int32"), is_left, is_right
        ),
        name="C",
    )
    z = np.zeros(n, "int32")
    tvm.build(te.create_prim_func([*tensors, C]), target=kernels.HOST)(x, y, left, right, z)
    for i in range(n):
        scaled = x[i : i + 1].astype("int64") << (left[i] if is_left else 0)
        shift = 31 + (right[i] if is_right else 0)
        assert z[i] == exact_product(scaled, y[i : i + 1], int(shift))[0]


@pytest.mark.parametrize("kinds", [("int8", "int8"), ("uint8", "int8"), ("uint8", "uint8")])
def test_dp4a(kinds):
    n = 64
    a, b, c = (
        buffer(*d) for d in (("A", kinds[0], 4 * n), ("B", kinds[1], 4 * n), ("C", "int32", n))
    )
    i = tir.Var("i", "int32")
    four = tir.Ramp(i * 4, const(1), 4)
    value = tir.dp4a(tir.BufferLoad(a, [four]), tir.BufferLoad(b, [four]), tir.BufferLoad(c, [i]))
    body = loop(i, const(n), tir.BufferStore(c, value, [i]))
    mod = tvm.tir.transform.BindTarget(tvm.target.Target(kernels.HOST))(module(body, [a, b, c]))
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-128 if k == "int8" else 0, 128, 4 * n).astype(k) for k in kinds)
    z = rng.integers(-1000, 1000, n).astype("int32")
    products = x.astype("int32") * y.astype("int32")
    expected = z + products.reshape(n, 4).sum(1)
    run(tvm.tir.transform.LowerIntrin()(mod), x, y, z)
    np.testing.assert_array_equal(z, expected)


def test_trace_gives_the_value_on():
    seen = []

    @tvm_ffi.register_global_func("testing.host.trace", override=True)
    def trace(name, value):
        seen.append((name, value))
        return None if value < 3 else value * 10

    A = te.placeholder((6,), "int32", name="A")
    B = te.compute((6,), lambda i: tir.trace(["A", A[i]], "testing.host.trace") + 1, name="B")
    x, y = np.arange(6, dtype="int32"), np.zeros(6, "int32")
    with tvm.transform.PassContext(config={"tir.disable_vectorize": True}):
        mod = tvm.build(te.create_prim_func([A, B]), target=kernels.HOST)
    mod(x, y)
    np.testing.assert_array_equal(y, [1, 2, 3, 31, 41, 51])
    assert seen == [("A", i) for i in range(6)]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "uint32"])
def test_atomic_add(dtype):
    n = 4096
    a, s, i = buffer("A", dtype, n), buffer("S", dtype, 2), tir.Var("i", "int32")
    where = call("handle", "address_of", tir.BufferLoad(s, [const(1)]))
    add = tir.Evaluate(call(dtype, "atomic_add", where, tir.BufferLoad(a, [i])))
    x, total = np.ones(n, dtype), np.zeros(2, dtype)
    run(module(loop(i, const(n), add, 1), [a, s], noalias=False), x, total)
    np.testing.assert_array_equal(total, [0, n])
