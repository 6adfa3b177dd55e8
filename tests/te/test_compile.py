# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions compiled for this machine."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import te, tir


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def sigmoid():
    A = te.placeholder((33, 65), name="A")
    a = random(33, 65)
    C = te.compute((33, 65), lambda i, j: 1 / (1 + te.exp(-A[i, j])), name="C")
    return [A, C], [a], 1 / (1 + np.exp(-a))


def dynamic_softmax():
    n, m = te.size_var("n"), te.size_var("m")
    A = te.placeholder((n, m), name="A")
    k, l = te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "l")
    top = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="top")
    e = te.compute((n, m), lambda i, j: te.exp(A[i, j] - top[i]), name="e")
    total = te.compute((n,), lambda i: te.sum(e[i, l], axis=l), name="total")
    C = te.compute((n, m), lambda i, j: e[i, j] / total[i], name="C")
    a = random(7, 19)
    x = np.exp(a - a.max(1, keepdims=True))
    return [A, C], [a], x / x.sum(1, keepdims=True)


def convolution():
    A, W = te.placeholder((2, 3, 9, 9), name="A"), te.placeholder((4, 3, 3, 3), name="W")
    c, y, x = (te.reduce_axis((0, 3), name) for name in "cyx")
    P = te.compute(
        (2, 3, 11, 11),
        lambda n, c, h, w: te.if_then_else(
            te.all(h >= 1, h < 10, w >= 1, w < 10), A[n, c, h - 1, w - 1], 0.0
        ),
        name="P",
    )
    C = te.compute(
        (2, 4, 9, 9),
        lambda n, o, h, w: te.sum(P[n, c, h + y, w + x] * W[o, c, y, x], axis=[c, y, x]),
        name="C",
    )
    a, w = random(2, 3, 9, 9), random(4, 3, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3)
    )
    return [A, W, C], [a, w], np.einsum("nchwyx,ocyx->nohw", windows, w)


def cumulative_sum():
    X, state = te.placeholder((6, 5), name="X"), te.placeholder((6, 5), name="state")
    init = te.compute((1, 5), lambda _, i: X[0, i], name="init")
    update = te.compute((6, 5), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    x = random(6, 5)
    return [X, te.scan(init, update, state)], [x], np.cumsum(x, 0)


def operators():
    A, B = te.placeholder((4, 1), name="A"), te.placeholder((5,), name="B")
    a, b = random(4, 1), random(5)
    return [A, B, (A + B) * 2 - A / 3], [a, b], (a + b) * 2 - a / 3


@pytest.mark.parametrize("override", [None, "int64"])
@pytest.mark.parametrize("make", [sigmoid, dynamic_softmax, convolution, cumulative_sum, operators])
def test_compiled(make, override):
    args, inputs, expected = make()
    func = te.create_prim_func(args, index_dtype_override=override)
    lib = tvm.compile(func, target=tvm.testing.host_target())
    out = tvm.runtime.empty(expected.shape, "float32")
    lib(*map(tvm.runtime.tensor, inputs), out)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-6)


def test_argmin():
    def combine(x, y):
        keep = tir.any(x[1] < y[1], tir.all(x[1] == y[1], x[0] < y[0]))
        return tir.Select(keep, x[0], y[0]), tir.Select(keep, x[1], y[1])

    argmin = te.comm_reducer(combine, lambda t, u: (tir.const(-1, t), te.max_value(u)))
    A = te.placeholder((5, 40), name="A")
    k = te.reduce_axis((0, 40), name="k")
    where, what = te.compute((5,), lambda i: argmin((k.var, A[i, k]), axis=k), name="best")
    lib = tvm.compile(te.create_prim_func([A, where, what]), target=tvm.testing.host_target())
    a = random(5, 40)
    i, v = tvm.runtime.empty((5,), "int32"), tvm.runtime.empty((5,), "float32")
    lib(tvm.runtime.tensor(a), i, v)
    np.testing.assert_array_equal(i.numpy(), a.argmin(1))
    np.testing.assert_array_equal(v.numpy(), a.min(1))
