# SPDX-License-Identifier: Apache-2.0
"""Operators as tensor expressions, and what NumPy makes of their inputs."""

import numpy as np
import tvm
import tvm.testing
from tvm import te, tir

TARGET = tvm.testing.host_target("-num-cores=2")


def placeholder(*shape, name="A", dtype="float32"):
    return te.placeholder(shape, dtype, name)


def sigmoid(*shape):
    a = placeholder(*shape)
    return [a, te.compute(shape, lambda *i: 1 / (1 + tir.exp(-a(*i))), "out")]


def relu_of_bias(n, c, h, w):
    a, b = placeholder(n, c, h, w), placeholder(c, name="b")
    zero = tir.const(0, "float32")
    value = lambda n, c, h, w: tir.max(a[n, c, h, w] + b[c], zero)
    return [a, b, te.compute((n, c, h, w), value, "out")]


def row_sum(n, m):
    a, k = placeholder(n, m), te.reduce_axis((0, m), "k")
    return [a, te.compute((n,), lambda i: te.sum(a[i, k], k), "out")]


def row_sum_relu(n, m):
    a, total = row_sum(n, m)
    zero = tir.const(0, "float32")
    return [a, te.compute((n,), lambda i: tir.max(total[i], zero), "relu")]


def column_sum(n, m):
    a, k = placeholder(n, m), te.reduce_axis((0, n), "k")
    return [a, te.compute((m,), lambda i: te.sum(a[k, i], k), "out")]


def whole_sum(n, m):
    a, k, l = placeholder(n, m), te.reduce_axis((0, n), "k"), te.reduce_axis((0, m), "l")
    return [a, te.compute((1,), lambda i: te.sum(a[k, l], [k, l]), "out")]


def sum_over(axes, *shape):
    a = placeholder(*shape)
    reduced = {d: te.reduce_axis((0, shape[d])) for d in axes}
    kept = [d for d in range(len(shape)) if d not in axes]

    def value(*i):
        index = dict(zip(kept, i, strict=False)) | reduced
        return te.sum(a(*[index[d] for d in range(len(shape))]), list(reduced.values()))

    return [a, te.compute([shape[d] for d in kept] or [1], value, "out")]


def softmax(n, m):
    a, k, l = placeholder(n, m), te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "l")
    top = te.compute((n,), lambda i: te.max(a[i, k], k), "top")
    e = te.compute((n, m), lambda i, j: tir.exp(a[i, j] - top[i]), "e")
    total = te.compute((n,), lambda i: te.sum(e[i, l], l), "total")
    return [a, te.compute((n, m), lambda i, j: e[i, j] / total[i], "out")]


def transpose(n, m):
    a = placeholder(n, m)
    return [a, te.compute((m, n), lambda i, j: a[j, i], "out")]


def matmul(n, m, d):
    a, b = placeholder(n, d), placeholder(d, m, name="B")
    k = te.reduce_axis((0, d), "k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], k), "out")]


def matmul_relu(n, m, d):
    a, b, c = matmul(n, m, d)
    zero = tir.const(0, "float32")
    return [a, b, te.compute((n, m), lambda i, j: tir.max(c[i, j], zero), "relu")]


def dense(n, m, d):
    a, b = placeholder(n, d), placeholder(m, d, name="B")
    k = te.reduce_axis((0, d), "k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[j, k], k), "out")]


def conv(c, size, out, window):
    a = placeholder(1, c, size + window - 1, size + window - 1)
    w = placeholder(out, c, window, window, name="W")
    rc, ry, rx = (te.reduce_axis((0, e), n) for n, e in [("rc", c), ("ry", window), ("rx", window)])
    value = lambda n, o, y, x: te.sum(a[n, rc, y + ry, x + rx] * w[o, rc, ry, rx], [rc, ry, rx])
    return [a, w, te.compute((1, out, size, size), value, "out")]


def strided_conv(c, size, out, window, batch=1, relu=False):
    a = placeholder(batch, c, 2 * size + window - 2, 2 * size + window - 2)
    w = placeholder(out, c, window, window, name="W")
    rc, ry, rx = (te.reduce_axis((0, e), n) for n, e in [("rc", c), ("ry", window), ("rx", window)])
    value = lambda n, o, y, x: te.sum(
        a[n, rc, 2 * y + ry, 2 * x + rx] * w[o, rc, ry, rx], [rc, ry, rx]
    )
    result = te.compute((batch, out, size, size), value, "out")
    if relu:
        result = te.compute(result.shape, lambda *i: te.max(result(*i), 0.0), "relu")
    return [a, w, result]


def grouped_conv(c, size, out, window, groups):
    a = placeholder(1, c, size + window - 1, size + window - 1)
    w = placeholder(out, c // groups, window, window, name="W")
    rc, ry, rx = (te.reduce_axis((0, e)) for e in (c // groups, window, window))
    value = lambda n, o, y, x: te.sum(
        a[n, o // (out // groups) * (c // groups) + rc, y + ry, x + rx] * w[o, rc, ry, rx],
        [rc, ry, rx],
    )
    return [a, w, te.compute((1, out, size, size), value, "out")]


def depthwise(c, size, window, step=1):
    a = placeholder(1, c, step * (size - 1) + window, step * (size - 1) + window)
    w = placeholder(c, window, window, name="W")
    ry, rx = (te.reduce_axis((0, window), n) for n in ("ry", "rx"))
    value = lambda n, c, y, x: te.sum(
        a[n, c, step * y + ry, step * x + rx] * w[c, ry, rx], [ry, rx]
    )
    return [a, w, te.compute((1, c, size, size), value, "out")]


def max_pool(c, size, window, step):
    a = placeholder(1, c, step * (size - 1) + window, step * (size - 1) + window)
    ry, rx = (te.reduce_axis((0, window)) for _ in range(2))
    value = lambda n, c, y, x: te.max(a[n, c, step * y + ry, step * x + rx], [ry, rx])
    return [a, te.compute((1, c, size, size), value, "out")]


def padded_depthwise(c, size, window):
    a, rest = placeholder(1, c, size, size), window // 2
    inside = lambda i: tir.all(i >= rest, i < size + rest)
    value = lambda n, c, y, x: tir.if_then_else(
        tir.all(inside(y), inside(x)), a[n, c, y - rest, x - rest], 0.0
    )
    padded = te.compute((1, c, size + 2 * rest, size + 2 * rest), value, "padded")
    w = placeholder(c, window, window, name="W")
    ry, rx = (te.reduce_axis((0, window), n) for n in ("ry", "rx"))
    value = lambda n, c, y, x: te.sum(padded[n, c, y + ry, x + rx] * w[c, ry, rx], [ry, rx])
    return [a, w, te.compute((1, c, size, size), value, "out")]


def padded_lines(size, c, rest):
    """Pixels with their channels next to each other, and a margin of zeros."""
    a = placeholder(1, size, size, c)
    inside = lambda i: tir.all(i >= rest, i < size + rest)
    value = lambda n, y, x, c: tir.if_then_else(
        tir.all(inside(y), inside(x)), a[n, y - rest, x - rest, c], 0.0
    )
    return a, te.compute((1, size + 2 * rest, size + 2 * rest, c), value, "padded")


def conv_of_lines(size, c, out, window):
    a, padded = padded_lines(size, c, window // 2)
    w = placeholder(window, window, c, out, name="W")
    ry, rx, rc = (te.reduce_axis((0, e)) for e in (window, window, c))
    value = lambda n, y, x, o: te.sum(
        padded[n, y + ry, x + rx, rc] * w[ry, rx, rc, o], [ry, rx, rc]
    )
    return [a, w, te.compute((1, size, size, out), value, "out")]


def depthwise_of_lines(size, c, window, step=1):
    a, padded = padded_lines(size, c, window // 2)
    w = placeholder(window, window, c, name="W")
    ry, rx = (te.reduce_axis((0, window)) for _ in range(2))
    value = lambda n, y, x, c: te.sum(
        padded[n, step * y + ry, step * x + rx, c] * w[ry, rx, c], [ry, rx]
    )
    return [a, w, te.compute((1, size // step, size // step, c), value, "out")]


def average_pool(c, size, window, step):
    """The reduction and what divides it are blocks of their own."""
    a = placeholder(1, c, step * (size - 1) + window, step * (size - 1) + window)
    ry, rx = (te.reduce_axis((0, window)) for _ in range(2))
    value = lambda n, c, y, x: te.sum(a[n, c, step * y + ry, step * x + rx], [ry, rx])
    total = te.compute((1, c, size, size), value, "total")
    count = tir.const(window * window, "float32")
    return [a, te.compute((1, c, size, size), lambda *i: total(*i) / count, "out")]


def max_pool_of_lines(size, c, window, step):
    a, padded = padded_lines(size, c, window // 2)
    ry, rx = (te.reduce_axis((0, window)) for _ in range(2))
    value = lambda n, y, x, c: te.max(padded[n, step * y + ry, step * x + rx, c], [ry, rx])
    out = (size + step - 1) // step
    return [a, te.compute((1, out, out, c), value, "out")]


def concatenation(n, m, d):
    a, b = placeholder(n, d), placeholder(m, d, name="B")
    value = lambda i, j: tir.if_then_else(i < n, a[i, j], b[i - n, j])
    return [a, b, te.compute((n + m, d), value, "out")]


def softmax_of(a):
    e = np.exp(a - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def conv_of(a, w):
    window = w.shape[-1]
    views = np.lib.stride_tricks.sliding_window_view(a, (window, window), (2, 3))
    return np.einsum("ncyxij,ocij->noyx", views, w)


def grouped_conv_of(a, w, groups):
    parts = zip(np.split(a, groups, 1), np.split(w, groups, 0), strict=True)
    return np.concatenate([conv_of(*part) for part in parts], 1)


def pool_of(a, window, step, how=np.max):
    views = np.lib.stride_tricks.sliding_window_view(a, (window, window), (2, 3))
    return how(views[..., ::step, ::step, :, :], (-2, -1))


def depthwise_of(a, w):
    views = np.lib.stride_tricks.sliding_window_view(a, w.shape[1:], (2, 3))
    return np.einsum("ncyxij,cij->ncyx", views, w)


def windows_of_lines(a, w):
    rest = w.shape[0] // 2
    padded = np.pad(a, [(0, 0), (rest, rest), (rest, rest), (0, 0)])
    return np.lib.stride_tricks.sliding_window_view(padded, w.shape[:2], (1, 2))


def conv_of_lines_of(a, w):
    return np.einsum("nyxcij,ijco->nyxo", windows_of_lines(a, w), w)


def depthwise_of_lines_of(a, w, step=1):
    return np.einsum("nyxcij,ijc->nyxc", windows_of_lines(a, w), w)[:, ::step, ::step]


CASES = {
    "sigmoid": (sigmoid(64, 64), lambda a: 1 / (1 + np.exp(-a))),
    "sigmoid of odd sizes": (sigmoid(7, 11, 13), lambda a: 1 / (1 + np.exp(-a))),
    "sigmoid of one": (sigmoid(1), lambda a: 1 / (1 + np.exp(-a))),
    "broadcast": (
        relu_of_bias(2, 5, 9, 30),
        lambda a, b: np.maximum(a + b[None, :, None, None], 0),
    ),
    "row sum": (row_sum(33, 257), lambda a: a.sum(1)),
    "column sum": (column_sum(65, 333), lambda a: a.sum(0)),
    "whole sum": (whole_sum(128, 512), lambda a: a.sum().reshape(1)),
    "sum of leading axes": (sum_over((0, 1), 16, 64, 70), lambda a: a.sum((0, 1))),
    "sum of trailing axes": (sum_over((1, 2), 2, 60, 70), lambda a: a.sum((1, 2))),
    "sum of axes apart": (sum_over((0, 2), 30, 7, 40), lambda a: a.sum((0, 2))),
    "sum of short axes apart": (sum_over((1, 3), 3, 5, 40, 19), lambda a: a.sum((1, 3))),
    "sum of many short axes apart": (sum_over((0, 2), 40, 7, 37), lambda a: a.sum((0, 2))),
    "sum of the first and last axis": (sum_over((0, 3), 4, 5, 6, 33), lambda a: a.sum((0, 3))),
    "sum of all axes": (sum_over((0, 1, 2), 3, 50, 70), lambda a: a.sum().reshape(1)),
    "softmax": (softmax(20, 100), softmax_of),
    "softmax of odd sizes": (softmax(3, 67), softmax_of),
    "softmax of groups of rows": (softmax(96, 70), softmax_of),
    "transpose": (transpose(64, 128), lambda a: a.T),
    "transpose of odd sizes": (transpose(37, 53), lambda a: a.T),
    "transpose of prime sizes": (transpose(211, 307), lambda a: a.T),
    "matmul": (matmul(64, 96, 32), lambda a, b: a @ b),
    "matmul of odd sizes": (matmul(37, 83, 19), lambda a, b: a @ b),
    "matmul with relu": (matmul_relu(64, 64, 40), lambda a, b: np.maximum(a @ b, 0)),
    "matmul of lines that collide": (matmul(64, 1024, 32), lambda a, b: a @ b),
    "dense": (dense(24, 40, 64), lambda a, b: a @ b.T),
    "dense of lines that collide": (dense(24, 1024, 32), lambda a, b: a @ b.T),
    "vector times matrix": (matmul(1, 200, 300), lambda a, b: a @ b),
    "matrix times vector": (dense(1, 100, 300), lambda a, b: a @ b.T),
    "convolution": (conv(5, 14, 12, 3), conv_of),
    "strided convolution": (strided_conv(8, 6, 32, 3), lambda a, w: conv_of(a, w)[..., ::2, ::2]),
    "strided convolution of many windows": (
        strided_conv(3, 24, 32, 5, batch=2),
        lambda a, w: conv_of(a, w)[..., ::2, ::2],
    ),
    "strided convolution and an activation": (
        strided_conv(3, 23, 37, 5, relu=True),
        lambda a, w: np.maximum(conv_of(a, w)[..., ::2, ::2], 0),
    ),
    "strided convolution of single elements": (
        strided_conv(8, 6, 32, 1),
        lambda a, w: conv_of(a, w)[..., ::2, ::2],
    ),
    "convolution of narrow lines": (conv(1024, 7, 16, 1), conv_of),
    "convolution of odd sizes": (conv(3, 31, 13, 2), conv_of),
    "depthwise convolution": (depthwise(6, 28, 3), depthwise_of),
    "strided depthwise convolution": (
        depthwise(6, 15, 3, step=2),
        lambda a, w: depthwise_of(a, w)[..., ::2, ::2],
    ),
    "grouped convolution": (grouped_conv(12, 9, 24, 3, 3), lambda a, w: grouped_conv_of(a, w, 3)),
    "max pool": (max_pool(5, 20, 3, 2), lambda a: pool_of(a, 3, 2)),
    "max pool of whole windows": (max_pool(5, 21, 2, 2), lambda a: pool_of(a, 2, 2)),
    "average pool": (average_pool(6, 10, 3, 1), lambda a: pool_of(a, 3, 1, np.mean)),
    "average pool of odd sizes": (average_pool(3, 31, 3, 2), lambda a: pool_of(a, 3, 2, np.mean)),
    "max pool of lines": (
        max_pool_of_lines(15, 20, 3, 2),
        lambda a: windows_of_lines(a, np.zeros((3, 3)))[:, ::2, ::2].max((-2, -1)),
    ),
    "padded depthwise convolution": (
        padded_depthwise(6, 15, 3),
        lambda a, w: depthwise_of(np.pad(a, [(0, 0), (0, 0), (1, 1), (1, 1)]), w),
    ),
    "convolution of lines": (conv_of_lines(9, 8, 70, 3), conv_of_lines_of),
    "convolution of pixels": (conv_of_lines(12, 40, 32, 1), conv_of_lines_of),
    "depthwise convolution of lines": (depthwise_of_lines(14, 48, 3), depthwise_of_lines_of),
    "depthwise convolution of odd lines": (depthwise_of_lines(13, 37, 5), depthwise_of_lines_of),
    "strided depthwise convolution of lines": (
        depthwise_of_lines(12, 32, 3, step=2),
        lambda a, w: depthwise_of_lines_of(a, w, 2),
    ),
    "concatenation": (concatenation(5, 6, 70), lambda *parts: np.concatenate(parts)),
}
# Of unknown sizes.
N, M, K = te.var("n"), te.size_var("m"), te.var("k")
DYNAMIC = {
    "sigmoid": (sigmoid(N, M), CASES["sigmoid"][1]),
    "sigmoid of rows": (sigmoid(N, 48), CASES["sigmoid"][1]),
    "broadcast": (relu_of_bias(2, N, M, 30), CASES["broadcast"][1]),
    "row sum": (row_sum(N, M), lambda a: a.sum(1)),
    "column sum": (column_sum(N, M), lambda a: a.sum(0)),
    "sum of leading axes": (sum_over((0, 1), N, 5, M), lambda a: a.sum((0, 1))),
    "softmax": (softmax(N, M), softmax_of),
    "row sum with relu": (row_sum_relu(N, M), lambda a: np.maximum(a.sum(1), 0)),
    "transpose": (transpose(N, M), lambda a: a.T),
    "matmul": (matmul(N, 48, 32), lambda a, b: a @ b),
    "matmul of unknown sizes": (matmul(N, M, K), lambda a, b: a @ b),
    "matmul with relu": (matmul_relu(N, M, K), lambda a, b: np.maximum(a @ b, 0)),
    "dense": (dense(N, M, 40), lambda a, b: a @ b.T),
}


def values_of(args, sizes=None):
    random = np.random.default_rng(0)
    shape = lambda a: [sizes[d.name] if isinstance(d, tir.Var) else int(d) for d in a.shape]
    *inputs, out = [random.normal(size=shape(a)).astype("float32") for a in args]
    return inputs, np.zeros_like(out)


def run(module, inputs, out):
    tensors = [tvm.runtime.tensor(x) for x in (*inputs, out)]
    module(*tensors)
    return tensors[-1].numpy()
