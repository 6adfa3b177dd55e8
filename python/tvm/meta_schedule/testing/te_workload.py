# SPDX-License-Identifier: Apache-2.0
"""Programs to tune, as tensor expressions: products, convolutions, normalisations."""

import fractions
import functools

import numpy as np

from tvm import te, tir

_F32 = "float32"


def _product(out_dtype, *values):
    """The product of values, each of them in the type of the result first."""
    return functools.reduce(lambda a, b: a * b, (v.astype(out_dtype) for v in values))


def _pad(x, padding, axes):
    """`x` with `padding` zeros before and after along some axes."""
    if padding == 0:
        return x
    shape = [e + 2 * padding if d in axes else e for d, e in enumerate(x.shape)]

    def element(*index):
        inside = [c for d in axes for c in (index[d] >= padding, index[d] < x.shape[d] + padding)]
        source = [i - padding if d in axes else i for d, i in enumerate(index)]
        return tir.if_then_else(tir.all(*inside), x(*source), tir.const(0, x.dtype))

    return te.compute(shape, element, name="PadInput")


def _out(size, kernel, stride, padding, dilation):
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _axes(extents, prefix="r"):
    return [te.reduce_axis((0, e), name=f"{prefix}{i}") for i, e in enumerate(extents)]


def _conv_channels_last(x, w, sizes, stride, padding, dilation, groups, out_dtype, name):
    """x[N, spatial…, CI], w[kernel…, CI / groups, CO]."""
    dims, kernel = len(sizes), [int(e) for e in w.shape[: len(sizes)]]
    per_group, co = int(w.shape[-2]), int(w.shape[-1])
    padded = _pad(x, padding, range(1, dims + 1))
    taps, channel = _axes(kernel, "k"), te.reduce_axis((0, per_group), name="rc")
    outs = [_out(s, k, stride, padding, dilation) for s, k in zip(sizes, kernel, strict=True)]

    def element(n, *rest):
        *at, c = rest
        where = [a * stride + t * dilation for a, t in zip(at, taps, strict=True)]
        source = channel if groups == 1 else c // (co // groups) * per_group + channel
        value = _product(out_dtype, padded(n, *where, source), w(*taps, channel, c))
        return te.sum(value, axis=[*taps, channel])

    return te.compute((x.shape[0], *outs, co), element, name=name)


def _conv(name, N, sizes, CI, CO, kernel_size, stride, padding, dilation, groups, dtypes):
    x = te.placeholder((N, *sizes, CI), dtypes[0], name="inputs")
    w = te.placeholder((*[kernel_size] * len(sizes), CI // groups, CO), dtypes[0], name="weight")
    out = _conv_channels_last(x, w, sizes, stride, padding, dilation, groups, dtypes[1], name)
    return x, w, out


def batch_matmul_nkkm(B, N, M, K, in_dtype=_F32, out_dtype=_F32):
    """x[B, N, K] @ y[B, K, M]"""
    x = te.placeholder((B, N, K), in_dtype, name="X")
    y = te.placeholder((B, K, M), in_dtype, name="Y")
    k = te.reduce_axis((0, K), name="k")
    element = lambda b, i, j: te.sum(_product(out_dtype, x[b, i, k], y[b, k, j]), axis=k)
    return x, y, te.compute((B, N, M), element, name="Z")


def conv1d_nlc(
    N, L, CI, CO, kernel_size, stride=1, padding=0, dilation=1, groups=1, in_dtype=_F32,
    out_dtype=_F32,
):  # fmt: skip
    """Along one axis, channels last."""
    dtypes = (in_dtype, out_dtype)
    return _conv(
        "conv1d_nlc", N, [L], CI, CO, kernel_size, stride, padding, dilation, groups, dtypes
    )


def conv2d_nhwc(
    N, H, W, CI, CO, kernel_size, stride=1, padding=0, dilation=1, groups=1, in_dtype=_F32,
    out_dtype=_F32,
):  # fmt: skip
    """Of images, channels last."""
    dtypes = (in_dtype, out_dtype)
    return _conv(
        "conv2d_nhwc", N, [H, W], CI, CO, kernel_size, stride, padding, dilation, groups, dtypes
    )


def conv3d_ndhwc(
    N, D, H, W, CI, CO, kernel_size, stride=1, padding=0, dilation=1, groups=1, in_dtype=_F32,
    out_dtype=_F32,
):  # fmt: skip
    """Of volumes, channels last."""
    dtypes = (in_dtype, out_dtype)
    return _conv(
        "conv3d_ndhwc", N, [D, H, W], CI, CO, kernel_size, stride, padding, dilation, groups, dtypes
    )


def depthwise_conv2d_nhwc(
    N, H, W, C, kernel_size, stride=1, padding=0, dilation=1, factor=1, in_dtype=_F32,
    out_dtype=_F32,
):  # fmt: skip
    """Each channel by itself, `factor` results for each."""
    x = te.placeholder((N, H, W, C), in_dtype, name="placeholder")
    w = te.placeholder((factor, kernel_size, kernel_size, C), in_dtype, name="placeholder_1")
    padded = _pad(x, padding, (1, 2))
    h, v = _axes((kernel_size, kernel_size))
    outs = [_out(s, kernel_size, stride, padding, dilation) for s in (H, W)]

    def element(n, i, j, c):
        value = padded[n, i * stride + h * dilation, j * stride + v * dilation, c // factor]
        return te.sum(_product(out_dtype, value, w[c % factor, h, v, c // factor]), axis=[h, v])

    return x, w, te.compute((N, *outs, C * factor), element, name="depth_conv2d_nhwc")


def conv2d_transpose_nhwc(
    N, H, W, CI, CO, kernel_size, stride=1, padding=0, in_dtype=_F32, out_dtype=_F32
):
    """The gradient of a convolution with respect to its input: weights [kernel, kernel, CI, CO]."""
    x = te.placeholder((N, H, W, CI), in_dtype, name="inputs")
    w = te.placeholder((kernel_size, kernel_size, CI, CO), in_dtype, name="weight")
    if padding >= kernel_size:
        raise ValueError(
            f"conv2d_transpose_nhwc: expected a padding below kernel_size {kernel_size}, "
            f"got {padding}"
        )
    # Elements of the input `stride` apart, with zeros between and around them.
    before = kernel_size - 1 - padding
    spread = [(e - 1) * stride + 1 + 2 * before for e in (H, W)]

    def element(n, i, j, c):
        places = [(i - before, H), (j - before, W)]
        inside = [a >= 0 for a, _ in places] + [a < (e - 1) * stride + 1 for a, e in places]
        on = [tir.floormod(a, stride) == 0 for a, _ in places] if stride > 1 else []
        at = [tir.floordiv(a, stride) for a, _ in places]
        return tir.if_then_else(tir.all(*inside, *on), x[n, at[0], at[1], c], tir.const(0, x.dtype))

    padded = te.compute((N, *spread, CI), element, name="PadInput")
    h, v, rc = _axes((kernel_size, kernel_size, CI))
    last = kernel_size - 1

    def result(n, i, j, c):
        value = _product(out_dtype, padded[n, i + h, j + v, rc], w[last - h, last - v, rc, c])
        return te.sum(value, axis=[h, v, rc])

    shape = (N, *[e - last for e in spread], CO)
    return x, w, te.compute(shape, result, name="conv2d_transpose_nhwc")


def conv2d_capsule_nhwijc(
    N, H, W, CI, CO, kernel_size, stride=1, padding=0, capsule_size=4, in_dtype=_F32,
    out_dtype=_F32,
):  # fmt: skip
    """A convolution of images whose elements are matrices: products of matrices are summed."""
    side = (capsule_size, capsule_size)
    x = te.placeholder((N, H, W, *side, CI), in_dtype, name="inputs")
    w = te.placeholder((kernel_size, kernel_size, *side, CI, CO), in_dtype, name="weight")
    padded = _pad(x, padding, (1, 2))
    h, v, k, rc = _axes((kernel_size, kernel_size, capsule_size, CI))
    outs = [_out(e, kernel_size, stride, padding, 1) for e in (H, W)]

    def element(n, y, z, i, j, c):
        value = padded[n, y * stride + h, z * stride + v, i, k, rc]
        return te.sum(_product(out_dtype, value, w[h, v, k, j, rc, c]), axis=[h, v, k, rc])

    return x, w, te.compute((N, *outs, *side, CO), element, name="conv2d_capsule_nhwijc")


def norm_bmn(B, M, N):
    """The Euclidean norm of each matrix."""
    a = te.placeholder((B, M, N), name="A")
    i, j = _axes((M, N))
    c = te.compute((B,), lambda b: te.sum(a[b, i, j] * a[b, i, j], axis=[i, j]), name="C")
    return a, te.compute((B,), lambda b: te.sqrt(c[b]), name="D")


def conv2d_nhwc_without_layout_rewrite(Input, Filter, stride, padding, dilation, out_dtype=_F32):
    """The convolution of two tensors; Filter [kernel, kernel, CI, CO] is read as it is."""
    sizes = [int(e) for e in Input.shape[1:3]]
    return _conv_channels_last(
        Input, Filter, sizes, stride, padding, dilation, 1, out_dtype, "conv2d_nhwc"
    )


def _batch_norm_relu(conv, shape, index, out_dtype):
    """(bias, offset, scale, max((conv + bias) * scale + offset, 0)); `index` picks the channel."""
    bias, scale, offset = (te.placeholder(shape, name=n) for n in ("bias", "bn_scale", "bn_offset"))
    stages = [
        ("bias_add", lambda value, *i: value + bias(*index(*i))),
        ("bn_mul", lambda value, *i: value * scale(*index(*i))),
        ("bn_add", lambda value, *i: value + offset(*index(*i))),
        ("compute", lambda value, *i: te.max(value, tir.const(0, out_dtype))),
    ]
    for name, stage in stages:
        conv = te.compute(
            conv.shape,
            lambda n, i, j, c, x=conv, stage=stage: stage(x(n, i, j, c), n, i, j, c),
            name=name,
        )
    return bias, offset, scale, conv


def conv2d_nhwc_bn_relu(
    N, H, W, CI, CO, kernel_size, strides, padding, dilation=1, in_dtype=_F32, out_dtype=_F32
):
    """A convolution, a bias, a scale and an offset per channel, and max(…, 0)."""
    x, w, conv = conv2d_nhwc(
        N, H, W, CI, CO, kernel_size, strides, padding, dilation, 1, in_dtype, out_dtype
    )
    return x, w, *_batch_norm_relu(conv, (CO,), lambda n, i, j, c: (c,), out_dtype)


def transpose_batch_matmul(batch, seq_len, n_head, n_dim, in_dtype=_F32, out_dtype=_F32):
    """query[b, i, h, d] * value[b, j, h, d] summed over d: the scores of attention."""
    q = te.placeholder((batch, seq_len, n_head, n_dim), in_dtype, name="query")
    v = te.placeholder((batch, seq_len, n_head, n_dim), in_dtype, name="value")
    turned_q = te.compute(
        (batch, n_head, seq_len, n_dim), lambda b, h, l, d: q[b, l, h, d], name="query_T"
    )
    turned_v = te.compute(
        (batch, n_head, n_dim, seq_len), lambda b, h, d, l: v[b, l, h, d], name="value_T"
    )
    k = te.reduce_axis((0, n_dim), name="k")

    def element(b, h, i, j):
        return te.sum(_product(out_dtype, turned_q[b, h, i, k], turned_v[b, h, k, j]), axis=k)

    return q, v, te.compute((batch, n_head, seq_len, seq_len), element, name="C")


def matmul(n, m, k, in_dtype=_F32, out_dtype=_F32):
    """a[n, k] @ b[k, m]"""
    a = te.placeholder((n, k), in_dtype, name="A")
    b = te.placeholder((k, m), in_dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    element = lambda i, j: te.sum(_product(out_dtype, a[i, r], b[r, j]), axis=r)
    return a, b, te.compute((n, m), element, name="C")


def matmul_relu(n, m, k, in_dtype=_F32, out_dtype=_F32):
    """max(a[n, k] @ b[k, m], 0)"""
    a, b, c = matmul(n, m, k, in_dtype, out_dtype)
    relu = lambda i, j: te.max(c[i, j], tir.const(0, out_dtype))
    return a, b, te.compute((n, m), relu, name="compute")


def conv2d_nchw(
    n, h, w, ci, co, kh, kw, stride, padding, dilation=1, in_dtype=_F32, out_dtype=_F32
):
    """Of images, channels first."""
    x = te.placeholder((n, ci, h, w), in_dtype, name="X")
    filters = te.placeholder((co, ci, kh, kw), in_dtype, name="W")
    padded = _pad(x, padding, (2, 3))
    rc, rh, rw = _axes((ci, kh, kw))
    shape = (n, co, _out(h, kh, stride, padding, dilation), _out(w, kw, stride, padding, dilation))

    def element(b, c, i, j):
        value = padded[b, rc, i * stride + rh * dilation, j * stride + rw * dilation]
        return te.sum(_product(out_dtype, value, filters[c, rc, rh, rw]), axis=[rc, rh, rw])

    return x, filters, te.compute(shape, element, name="conv2d_nchw")


def conv2d_nchw_bias_bn_relu(
    n, h, w, ci, co, kh, kw, stride, padding, dilation=1, in_dtype=_F32, out_dtype=_F32
):
    """As conv2d_nhwc_bn_relu, channels first."""
    x, filters, conv = conv2d_nchw(
        n, h, w, ci, co, kh, kw, stride, padding, dilation, in_dtype, out_dtype
    )
    channel = lambda b, c, i, j: (c, 0, 0)
    return x, filters, *_batch_norm_relu(conv, (co, 1, 1), channel, out_dtype)


def _winograd_matrices(tile, kernel):
    """(A, B, G): a correlation of `kernel` weights w with tile + kernel - 1 values d is
    A^T ((G w) * (B^T d)). Polynomials are multiplied at some points and at infinity; the
    correlation is that turned around."""
    size = tile + kernel - 1
    points = [fractions.Fraction(0)]
    for i in range(1, size):
        for p in (fractions.Fraction(i), fractions.Fraction(1, i)):
            points += [q for q in (p, -p) if q not in points]
    points = points[: size - 1]

    def times(polynomial, root):  # (x - root)
        shifted = [fractions.Fraction(0), *polynomial]
        scaled = [*(c * root for c in polynomial), fractions.Fraction(0)]
        return [a - b for a, b in zip(shifted, scaled, strict=True)]

    def powers(count):
        at_infinity = [0] * (count - 1) + [1]
        return [[p**k for k in range(count)] for p in points] + [at_infinity]

    basis = []  # polynomials that are zero at all other points
    for i, p in enumerate(points):
        others = [q for j, q in enumerate(points) if j != i]
        polynomial = functools.reduce(times, others, [fractions.Fraction(1)])
        factor = functools.reduce(lambda f, q: f * (p - q), others, fractions.Fraction(1))
        basis.append(([*polynomial, 0], factor))
    basis.append((functools.reduce(times, points, [fractions.Fraction(1)]), 1))
    A = powers(tile)
    G = [[v / f for v in row] for row, (_, f) in zip(powers(kernel), basis, strict=True)]
    B = [list(column) for column in zip(*(polynomial for polynomial, _ in basis), strict=True)]
    return [np.array(m, dtype=float) for m in (A, B, G)]


def _constant(values, name):
    """A matrix as an expression of its indices; what is known of it folds."""

    def element(i, j):
        result = tir.const(0.0, _F32)
        for (y, x), value in np.ndenumerate(values):
            if value != 0:
                result = tir.Select(tir.all(i == y, j == x), tir.const(value, _F32), result)
        return result

    attrs = {"schedule_rule": "None"}
    return te.compute(values.shape, element, name=name, attrs=attrs)


def conv2d_winograd_nhwc(
    N, H, W, CI, CO, kernel_size, stride=1, padding=0, dilation=1, tile_size=4
):
    """A convolution by products of tiles of tile_size x tile_size results: fewer multiplications
    than there are in its definition. Weights [kernel, kernel, CI, CO]."""
    if stride != 1 or dilation != 1:
        raise ValueError(
            "conv2d_winograd_nhwc: expected stride 1 and dilation 1, got "
            f"stride {stride} and dilation {dilation}"
        )
    m, r = tile_size, kernel_size
    size, outs = m + r - 1, [_out(e, r, 1, padding, 1) for e in (H, W)]
    rows, columns = ((e + m - 1) // m for e in outs)
    tiles = N * rows * columns
    x = te.placeholder((N, H, W, CI), name="inputs")
    w = te.placeholder((r, r, CI, CO), name="weight")
    A, B, G = _winograd_matrices(m, r)
    A, B, G = _constant(A, "A"), _constant(B, "B"), _constant(G, "G")

    def value(n, i, j, c):
        inside = tir.all(i >= padding, i < H + padding, j >= padding, j < W + padding)
        return tir.if_then_else(inside, x[n, i - padding, j - padding, c], tir.const(0, x.dtype))

    padded = te.compute((N, rows * m + r - 1, columns * m + r - 1, CI), value, name="data_pad")
    place = lambda p: (p // (rows * columns), p // columns % rows * m, p % columns * m)

    def tile(eps, nu, p, c):
        n, i, j = place(p)
        return padded[n, i + eps, j + nu, c]

    input_tile = te.compute((size, size, tiles, CI), tile, name="input_tile")
    a, b = _axes((size, size), "ra")
    data = te.compute(
        (size, size, tiles, CI),
        lambda e, n, p, c: te.sum(input_tile[a, b, p, c] * B[a, e] * B[b, n], axis=[a, b]),
        name="data_pack",
    )
    g, h = _axes((r, r), "rg")
    weights = te.compute(
        (size, size, CI, CO),
        lambda e, n, ci, co: te.sum(w[g, h, ci, co] * G[e, g] * G[n, h], axis=[g, h]),
        name="weight_pack",
    )
    k = te.reduce_axis((0, CI), name="ci")
    product = te.compute(
        (size, size, tiles, CO),
        lambda e, n, p, co: te.sum(data[e, n, p, k] * weights[e, n, k, co], axis=k),
        name="bgemm",
    )
    y, z = _axes((size, size), "rb")
    inverse = te.compute(
        (m, m, tiles, CO),
        lambda i, j, p, co: te.sum(product[y, z, p, co] * A[y, i] * A[z, j], axis=[y, z]),
        name="inverse",
    )

    def result(n, i, j, co):
        return inverse[i % m, j % m, n * rows * columns + i // m * columns + j // m, co]

    return x, w, te.compute((N, *outs, CO), result, name="conv2d_winograd")


def max_pool2d_nchw(n, h, w, ci, padding):
    """The largest of two by two."""
    x = te.placeholder((n, ci, h, w), name="X")
    padded = _pad(x, padding, (2, 3))
    i, j = _axes((2, 2))
    shape = (n, ci, (h + 2 * padding) // 2, (w + 2 * padding) // 2)
    element = lambda b, c, y, z: te.max(padded[b, c, 2 * y + i, 2 * z + j], axis=[i, j])
    return x, te.compute(shape, element, name="max_pool2d_nchw")


def softmax_mn(m, n):
    """Of each row."""
    a = te.placeholder((m, n), name="A")
    k, r = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="r")
    top = te.compute((m,), lambda i: te.max(a[i, k], axis=k), name="T_softmax_maxelem")
    e = te.compute((m, n), lambda i, j: te.exp(a[i, j] - top[i]), name="T_softmax_exp")
    total = te.compute((m,), lambda i: te.sum(e[i, r], axis=r), name="T_softmax_expsum")
    return a, te.compute((m, n), lambda i, j: e[i, j] / total[i], name="T_softmax_norm")


# name: (workload, parameters of four sizes)
CONFIGS = {
    "C1D": (
        conv1d_nlc,
        [
            (1, 256, 64, 128, 3, 2, 1),
            (1, 128, 128, 256, 1, 2, 0),
            (1, 64, 256, 256, 5, 1, 2),
            (1, 32, 512, 512, 3, 1, 1),
        ],
    ),
    "C2D": (
        conv2d_nhwc,
        [
            (1, 224, 224, 3, 64, 7, 2, 3),
            (1, 56, 56, 64, 64, 1, 1, 0),
            (1, 28, 28, 256, 512, 1, 2, 0),
            (1, 7, 7, 512, 512, 3, 1, 1),
        ],
    ),
    "C3D": (
        conv3d_ndhwc,
        [
            (1, 16, 224, 224, 3, 64, 7, 2, 3),
            (1, 16, 56, 56, 64, 64, 1, 1, 0),
            (1, 8, 28, 28, 128, 256, 3, 2, 1),
            (1, 4, 14, 14, 256, 512, 3, 2, 1),
        ],
    ),
    "DEP": (
        depthwise_conv2d_nhwc,
        [
            (1, 112, 112, 32, 3, 1, 1),
            (1, 112, 112, 64, 3, 2, 1),
            (1, 56, 56, 128, 3, 2, 1),
            (1, 14, 14, 512, 3, 2, 1),
        ],
    ),
    "DIL": (
        conv2d_nhwc,
        [
            (1, 224, 224, 3, 64, 7, 2, 3, 2),
            (1, 56, 56, 64, 64, 1, 1, 0, 2),
            (1, 28, 28, 128, 256, 3, 2, 1, 2),
            (1, 14, 14, 256, 512, 3, 2, 1, 2),
        ],
    ),
    "GRP": (
        conv2d_nhwc,
        [
            (1, 56, 56, 64, 128, 3, 2, 1, 1, 4),
            (1, 28, 28, 128, 128, 3, 1, 1, 1, 4),
            (1, 14, 14, 256, 512, 3, 2, 1, 1, 4),
            (1, 7, 7, 512, 512, 3, 1, 1, 1, 4),
        ],
    ),
    "T2D": (
        conv2d_transpose_nhwc,
        [
            (1, 4, 4, 512, 256, 4, 2, 1),
            (1, 8, 8, 256, 128, 4, 2, 1),
            (1, 16, 16, 128, 64, 4, 2, 1),
            (1, 32, 32, 64, 3, 4, 2, 1),
        ],
    ),
    "CAP": (
        conv2d_capsule_nhwijc,
        [
            (1, 16, 16, 32, 32, 3, 2, 1),
            (1, 8, 8, 32, 32, 3, 1, 1),
            (1, 16, 16, 8, 16, 3, 2, 1),
            (1, 8, 8, 16, 16, 3, 1, 1),
        ],
    ),
    "GMM": (
        batch_matmul_nkkm,
        [(1, 128, 128, 128), (1, 512, 32, 512), (1, 512, 512, 512), (1, 1024, 1024, 1024)],
    ),
    "NRM": (norm_bmn, [(1, 256, 256), (1, 512, 512), (1, 1024, 1024), (1, 4096, 1024)]),
    "SFM": (softmax_mn, [(256, 256), (512, 512), (1024, 1024), (2048, 2048)]),
    "CBR": (
        conv2d_nhwc_bn_relu,
        [
            (1, 224, 224, 3, 64, 7, 2, 3),
            (1, 56, 56, 64, 64, 1, 1, 0),
            (1, 28, 28, 128, 256, 1, 2, 0),
            (1, 7, 7, 512, 512, 3, 1, 1),
        ],
    ),
    "C2D_WIN_NHWC": (
        conv2d_winograd_nhwc,
        [
            (1, 56, 56, 64, 64, 3, 1, 1),
            (1, 14, 14, 128, 128, 3, 1, 1),
            (1, 28, 28, 64, 64, 3, 1, 1),
            (1, 7, 7, 256, 256, 3, 1, 1),
        ],
    ),
    "TBG": (
        transpose_batch_matmul,
        [(1, 128, 12, 64), (1, 128, 16, 64), (1, 64, 12, 128), (1, 128, 12, 128)],
    ),
}


def create_te_workload(name, idx):
    """The function of a workload of CONFIGS."""
    if name not in CONFIGS:
        raise ValueError(f"create_te_workload: expected one of {', '.join(CONFIGS)}, got {name!r}")
    workload, params = CONFIGS[name]
    return te.create_prim_func(workload(*params[idx]))
