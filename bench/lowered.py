# SPDX-License-Identifier: Apache-2.0
"""Operators of graphs as LegalizeOps lowers them, with int64 indices, beside the same written as
tensor expressions with separate sums and plain indices. The default rules schedule both.

python -m bench lowered --threads 2
"""

import numpy as np

from . import kernels, measure
from .measure import Row
from .programs import Timed

GROUPS = 8


def _rms_norm(te, a, scale):
    n, m = a.shape
    k = te.reduce_axis((0, m), "k")
    square = te.compute((n,), lambda i: te.sum(a[i, k] * a[i, k], k), "square")
    value = lambda i, j: a[i, j] * te.rsqrt(square[i] / m + 1e-5) * scale[j]
    return te.compute((n, m), value, "out")


def _group_norm(te, a, scale, bias):
    n, channels, h, w = map(int, a.shape)
    per = channels // GROUPS
    count = float(per * h * w)

    def summed(value, name):
        c, y, x = (te.reduce_axis((0, e), r) for e, r in ((per, "c"), (h, "y"), (w, "x")))
        element = lambda b, g: te.sum(value(b, g, a[b, g * per + c, y, x]), [c, y, x])
        return te.compute((n, GROUPS), element, name)

    total = summed(lambda b, g, v: v, "total")
    mean = te.compute((n, GROUPS), lambda b, g: total[b, g] / count, "mean")
    square = summed(lambda b, g, v: (v - mean[b, g]) * (v - mean[b, g]), "square")

    def value(b, c, y, x):
        g = te.floordiv(c, per)
        factor = te.rsqrt(square[b, g] / count + 1e-5) * scale[c]
        return (a[b, c, y, x] - mean[b, g]) * factor + bias[c]

    return te.compute(a.shape, value, "out")


def _max_pool(te, a):
    """Windows of 3 by 3 at every second place, one row and column around the image."""
    n, c, h, w = map(int, a.shape)

    def padded(b, d, i, j):
        inside = te.all(i >= 1, i <= h, j >= 1, j <= w)
        return te.if_then_else(inside, a[b, d, i - 1, j - 1], te.min_value("float32"))

    source = te.compute((n, c, h + 2, w + 2), padded, "padded")
    y, x = te.reduce_axis((0, 3), "y"), te.reduce_axis((0, 3), "x")
    value = lambda b, d, i, j: te.max(source[b, d, 2 * i + y, 2 * j + x], [y, x])
    return te.compute((n, c, h // 2, w // 2), value, "out")


def _mean_of_windows(size):
    def tensor(te, a):
        n, c, h, w = map(int, a.shape)
        y, x = te.reduce_axis((0, size), "y"), te.reduce_axis((0, size), "x")
        element = lambda b, d, i, j: te.sum(a[b, d, size * i + y, size * j + x], [y, x])
        total = te.compute((n, c, h // size, w // size), element, "total")
        return te.compute(total.shape, lambda *i: total(*i) / float(size * size), "out")

    return tensor


def _concat(te, *parts):
    n, widths = parts[0].shape[0], [int(p.shape[1]) for p in parts]
    first, second = widths[0], widths[0] + widths[1]

    def value(i, j):
        rest = te.if_then_else(j < second, parts[1][i, j - first], parts[2][i, j - second])
        return te.if_then_else(j < first, parts[0][i, j], rest)

    return te.compute((n, sum(widths)), value, "out")


def _take(te, table, ids):
    return te.compute((ids.shape[0], table.shape[1]), lambda i, j: table[ids[i], j], "out")


def _resize(te, a):
    """Twice as large, linear between the middles of pixels."""
    n, c, h, w = map(int, a.shape)

    def place(i, extent):
        at = (i.astype("float32") + 0.5) * 0.5 - 0.5
        low = te.floor(at)
        index = low.astype("int32")
        clip = lambda k: te.max(te.min(k, extent - 1), 0)
        return clip(index), clip(index + 1), at - low

    def value(b, d, i, j):
        top, bottom, down = place(i, h)
        left, right, across = place(j, w)
        mix = lambda p, q, part: p * (1.0 - part) + q * part
        upper = mix(a[b, d, top, left], a[b, d, top, right], across)
        return mix(upper, mix(a[b, d, bottom, left], a[b, d, bottom, right], across), down)

    return te.compute((n, c, 2 * h, 2 * w), value, "out")


def _argmax(te, a):
    from tvm import tir

    def better(p, q):
        nan = te.isnan(p[1]), te.isnan(q[1])  # one is the largest
        same = te.any(p[1] == q[1], te.all(*nan))
        first = te.any(p[1] > q[1], te.all(nan[0], tir.Not(nan[1])), te.all(same, p[0] < q[0]))
        return te.if_then_else(first, p[0], q[0]), te.if_then_else(first, p[1], q[1])

    def least(index_type, value_type):
        return te.const(-1, index_type), te.min_value(value_type)

    reducer = te.comm_reducer(better, least, name="argmax")
    n, m = a.shape
    k = te.reduce_axis((0, m), "k")
    places, _ = te.compute((n,), lambda i: reducer((k.var.astype("int64"), a[i, k]), k), "best")
    return te.compute((n,), lambda i: places[i], "out")


MATRIX, IMAGE = (1024, 1024), (1, 64, 56, 56)
# {name: (shapes of the inputs, of relax.op and its arguments, as a tensor expression)}
OPERATORS = {
    "softmax": ([MATRIX], lambda op, x: op.nn.softmax(x, -1), kernels._softmax),
    "layer_norm": (
        [MATRIX, MATRIX[1:], MATRIX[1:]],
        lambda op, x, g, b: op.nn.layer_norm(x, g, b, axes=[-1]),
        kernels._layer_norm,
    ),
    "rms_norm": (
        [MATRIX, MATRIX[1:]],
        lambda op, x, g: op.nn.rms_norm(x, g, axes=[-1], epsilon=1e-5),
        _rms_norm,
    ),
    "group_norm": (
        [IMAGE, IMAGE[1:2], IMAGE[1:2]],
        lambda op, x, g, b: op.nn.group_norm(x, g, b, GROUPS, 1, axes=[2, 3]),
        _group_norm,
    ),
    "gelu": ([MATRIX], lambda op, x: op.nn.gelu(x), kernels.KERNELS["gelu"].te),
    "max_pool2d": (
        [IMAGE],
        lambda op, x: op.nn.max_pool2d(x, (3, 3), (2, 2), (1, 1)),
        _max_pool,
    ),
    "avg_pool2d": (
        [IMAGE],
        lambda op, x: op.nn.avg_pool2d(x, (2, 2), (2, 2)),
        _mean_of_windows(2),
    ),
    "adaptive_avg_pool2d": (
        [(1, 512, 14, 14)],
        lambda op, x: op.nn.adaptive_avg_pool2d(x, (7, 7)),
        _mean_of_windows(2),
    ),
    "concat": (
        [(1024, 256), (1024, 512), (1024, 256)],
        lambda op, *parts: op.concat(list(parts), axis=1),
        _concat,
    ),
    "take": ([(30000, 768), 512], lambda op, x, i: op.take(x, i, axis=0), _take),
    "resize2d": (
        [IMAGE],
        lambda op, x: op.image.resize2d(x, (112, 112), method="linear", cubic_alpha=-0.75),
        _resize,
    ),
    "argmax": ([MATRIX], lambda op, x: op.argmax(x, axis=-1), _argmax),
    "transpose": ([MATRIX], lambda op, x: op.permute_dims(x), kernels._transpose),
}


def _inputs(shapes, seed):
    """Arrays of numbers; a number instead of a shape: that many rows of the first."""
    rng = np.random.default_rng(seed)
    return [
        rng.integers(0, shapes[0][0], shape)
        if isinstance(shape, int)
        else rng.standard_normal(shape, np.float32)
        for shape in shapes
    ]


def _kernel(func, inputs, out):
    import tvm

    main = tvm.compile(func, "llvm")["main"]
    return Timed(lambda: main(*inputs, out), out.numpy)


def lowered(operator, arrays):
    """The PrimFunc that LegalizeOps makes of an operator."""
    import tvm
    from tvm import relax

    params = [
        relax.Var(f"x{i}", relax.TensorStructInfo(a.shape, str(a.dtype)))
        for i, a in enumerate(arrays)
    ]
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(operator(relax.op, *params)))
    mod = relax.transform.LegalizeOps()(bb.get())
    (func,) = (f for f in mod.functions.values() if isinstance(f, tvm.tir.PrimFunc))
    return func.with_attr("global_symbol", "main")


def pair(name, seed=0):
    """(as it is lowered, as it is written): kernels that can be timed."""
    import tvm
    from tvm import te

    shapes, operator, expression = OPERATORS[name]
    arrays = _inputs(shapes, seed)
    inputs = [tvm.runtime.tensor(a) for a in arrays]
    written = [te.placeholder(a.shape, str(a.dtype), f"A{i}") for i, a in enumerate(arrays)]
    result = expression(te, *written)
    out = lambda: tvm.runtime.empty([int(s) for s in result.shape], result.dtype)
    return (
        _kernel(lowered(operator, arrays), inputs, out()),
        _kernel(te.create_prim_func([*written, result]), inputs, out()),
    )


def rows(name, options):
    """Of one operator."""
    ours, plain = pair(name, options.seed)
    timed = {"tvm": ours, "tvm, as written": plain}
    samples = measure.time_alternating(timed, options.rounds, options.seconds)
    np.testing.assert_allclose(ours.output(), plain.output(), 1e-4, 1e-4, err_msg=name)
    return [Row(f"{name}, lowered", who, samples[who]) for who in timed]
