# SPDX-License-Identifier: Apache-2.0
"""Products, attention, quantisation, elements between channels and space."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tvm import te, topi

from .checking import blocks, check, compiled, values


def near(build, arrays, expected, **options):
    check(build, arrays, expected, rtol=1e-4, atol=1e-4, **options)


SHAPES = [
    ((4, 5), (5, 6)),
    ((5,), (5, 6)),
    ((4, 5), (5,)),
    ((5,), (5,)),
    ((2, 3, 4, 5), (3, 5, 6)),
    ((2, 1, 4, 5), (3, 5, 6)),
    ((0, 5), (5, 6)),
    ((4, 0), (0, 6)),
]


@pytest.mark.parametrize("left, right", SHAPES)
def test_matmul_as_numpy(left, right):
    a, b = values(*left), values(*right, seed=1)
    near(topi.broadcast_matmul, [a, b], a @ b)
    if 0 not in left and len(left) > 1 and len(right) > 1:
        near(topi.broadcast_matmul, [a, b], a @ b, symbolic=True)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_transposed_factors(ta, tb):
    a, b = values(*((5, 4) if ta else (4, 5))), values(*((6, 5) if tb else (5, 6)), seed=1)
    expected = (a.T if ta else a) @ (b.T if tb else b)
    near(lambda x, y: topi.matmul(x, y, ta, tb), [a, b], expected)
    near(lambda x, y: topi.nn.matmul(x, y, None, None, ta, tb), [a, b], expected)
    c, d = np.stack([a, a + 1]), np.stack([b, b - 1])
    expected = np.stack(
        [(x.T if ta else x) @ (y.T if tb else y) for x, y in zip(c, d, strict=True)]
    )
    near(lambda x, y: topi.nn.batch_matmul(x, y, None, None, ta, tb), [c, d], expected)


def test_dense():
    x, w, b = values(3, 8), values(5, 8, seed=1), values(5, seed=2)
    near(topi.nn.dense, [x, w, b], x @ w.T + b)
    small = [x.round().astype("int8"), w.round().astype("int8")]
    expected = small[0].astype("int32") @ small[1].astype("int32").T
    near(lambda x, w: topi.nn.dense(x, w, None, "int32"), small, expected)
    assert blocks(compiled(topi.nn.dense, [x, w, b]).func) == ["T_matmul_NT", "T_add"]


EINSUMS = [
    "ij,jk->ik",
    "ij,jk",
    "bij,bjk->bik",
    "ii->i",
    "ij->ji",
    "i,i->",
    "...ij,...jk->...ik",
    "ij,ij,ij->i",
    "ii",
    "b...,b...->...",
]


@pytest.mark.parametrize("subscripts", EINSUMS)
def test_einsum(subscripts):
    sizes = {"i": 4, "j": 4, "k": 6, "b": 3}
    terms = subscripts.split("->")[0].split(",")
    shapes = [
        [s for c in t.replace("...", ".") for s in ([2, 3] if c == "." else [sizes[c]])]
        for t in terms
    ]
    arrays = [values(*shape, seed=i) for i, shape in enumerate(shapes)]
    near(lambda *t: topi.einsum(subscripts, *t), arrays, np.einsum(subscripts, *arrays))


def test_tensordot_and_outer():
    a, b = values(3, 4, 5), values(5, 4, 2, seed=1)
    near(lambda x, y: topi.tensordot(x, y, 1), [a, b], np.tensordot(a, b, 1))
    near(
        lambda x, y: topi.tensordot(x, y, ((2, 1), (0, 1))),
        [a, b],
        np.tensordot(a, b, ((2, 1), (0, 1))),
    )
    near(topi.outer, [a[0, 0], b[0, 0]], np.outer(a[0, 0], b[0, 0]))


# ---- attention --------------------------------------------------------------------------------
def attention(q, k, v, bias=None, scale=None, causal=None, window=None):
    q, k, v = (x.transpose(0, 2, 1, 3).astype("float64") for x in (q, k, v))
    k, v = (x.repeat(q.shape[1] // x.shape[1], 1) for x in (k, v))
    p = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    p = p if bias is None else p + bias
    i, j = np.ogrid[: p.shape[-2], : p.shape[-1]]
    i = i + (p.shape[-1] - p.shape[-2] if causal == "BottomRight" else 0)
    mask = np.ones(p.shape[-2:], bool)
    if causal:
        mask &= j <= i
    if window:
        mask &= j > i - window
    p = np.where(mask, p, -np.inf)
    e = np.exp(p - p.max(-1, keepdims=True))
    return ((e / e.sum(-1, keepdims=True)) @ v).transpose(0, 2, 1, 3)


@pytest.mark.parametrize("causal", [None, "TopLeft", "BottomRight"])
def test_attention(causal):
    q, k, v = values(2, 5, 4, 8), values(2, 7, 4, 8, seed=1), values(2, 7, 4, 6, seed=2)
    build = lambda q, k, v: topi.nn.attention(q, k, v, causal_mask=causal)
    near(build, [q, k, v], attention(q, k, v, causal=causal))
    near(build, [q, k, v], attention(q, k, v, causal=causal), symbolic=True)
    bias = values(2, 1, 5, 7, seed=3)
    build = lambda q, k, v, b: topi.nn.attention(q, k, v, b, 0.3, causal)
    near(build, [q, k, v, bias], attention(q, k, v, bias, 0.3, causal))
    few = [q, k[:, :, :2].copy(), v[:, :, :2].copy()]
    near(
        lambda q, k, v: topi.nn.attention(q, k, v, causal_mask=causal),
        few,
        attention(*few, causal=causal),
    )
    if causal:
        build = lambda q, k, v: topi.nn.attention(q, k, v, None, None, causal, 3)
        near(build, [q, k, v], attention(q, k, v, causal=causal, window=3))


@pytest.mark.parametrize("causal", [None, "TopLeft", "BottomRight"])
def test_attention_of_packed_sequences(causal):
    lengths_q, lengths_k = [3, 1, 4], [3, 2, 5]
    starts_q, starts_k = (np.cumsum([0, *n]).astype("int32") for n in (lengths_q, lengths_k))
    q, k, v = values(1, 8, 2, 4), values(1, 10, 2, 4, seed=1), values(1, 10, 2, 6, seed=2)
    parts = [
        attention(q[:, a:b], k[:, c:d], v[:, c:d], causal=causal)
        for a, b, c, d in zip(starts_q, starts_q[1:], starts_k, starts_k[1:], strict=False)
    ]
    build = lambda q, k, v, s, t: topi.nn.attention_var_len(q, k, v, s, t, None, causal)
    near(build, [q, k, v, starts_q, starts_k], np.concatenate(parts, 1))
    near(build, [q, k, v, starts_q, starts_k], np.concatenate(parts, 1), symbolic=True)


# ---- quantisation -----------------------------------------------------------------------------
def test_quantize():
    x = values(4, 5, low=-30, high=30)
    scale, zero = np.float32(0.1).reshape(()), np.int8(3).reshape(())
    expected = np.clip(np.round(x / scale) + zero, -128, 127).astype("int8")
    check(topi.quantize, [x, scale, zero], expected)
    check(topi.dequantize, [expected, scale, zero], (expected.astype("int32") - zero) * scale)
    scales, zeros = values(5, seed=1, low=0.05, high=0.3), values(5, seed=2, dtype="int8")
    expected = np.clip(np.round(x / scales) + zeros, 0, 255).astype("uint8")
    build = lambda x, s, z: topi.quantize(x, s, z, 1, "uint8")
    check(build, [x, scales, zeros], expected)
    half = ((expected.astype("int32") - zeros) * scales).astype("float16")
    check(
        lambda x, s, z: topi.dequantize(x, s, z, 1, "float16"),
        [expected, scales, zeros],
        half,
        rtol=1e-3,
    )


# ---- space ------------------------------------------------------------------------------------
def of(function, x, **options):
    return function(torch.from_numpy(x), **options).numpy()


def test_channels_and_space():
    x = values(2, 8, 3, 5)
    check(lambda t: topi.nn.pixel_shuffle(t, 2), [x], of(F.pixel_shuffle, x, upscale_factor=2))
    crd = lambda t: topi.nn.depth_to_space(t, 2, "NCHW", "CRD")
    check(crd, [x], of(F.pixel_shuffle, x, upscale_factor=2))
    dcr = x.reshape(2, 2, 2, 2, 3, 5).transpose(0, 3, 4, 1, 5, 2).reshape(2, 2, 6, 10)
    check(lambda t: topi.nn.depth_to_space(t, 2), [x], dcr)
    last = x.transpose(0, 2, 3, 1).copy()
    check(lambda t: topi.nn.depth_to_space(t, 2, "NHWC"), [last], dcr.transpose(0, 2, 3, 1))
    check(lambda t: topi.nn.space_to_depth(t, 2), [dcr.copy()], x)
    blocks_of = x.reshape(2, 8, 3, 5)
    check(topi.nn.flatten, [blocks_of], blocks_of.reshape(2, -1))


def test_batches_and_space():
    x = values(2, 4, 6, 3)
    expected = np.pad(x, [(0, 0), (0, 0), (1, 2), (0, 0)])
    expected = expected.reshape(2, 2, 2, 3, 3, 3).transpose(2, 4, 0, 1, 3, 5).reshape(12, 2, 3, 3)
    there = lambda t: topi.nn.space_to_batch_nd(t, (2, 3), (0, 1), (0, 2))
    check(there, [x], expected)
    back = lambda t: topi.nn.batch_to_space_nd(t, (2, 3), (0, 1), (0, 2))
    check(back, [expected], x)


def test_fifo():
    data, buffer = values(2, 3), values(5, 3, seed=1)
    check(
        lambda d, b: topi.nn.fifo_buffer(d, b, 0),
        [data, buffer],
        np.concatenate([buffer[2:], data]),
    )


def test_dense_of_a_weight_in_blocks():
    x, w, bias = values(5, 7), values(12, 7, seed=1), values(12, seed=2)
    packed = w.reshape(3, 4, 7).transpose(0, 2, 1).copy()
    check(topi.nn.dense_pack, [x, packed], x @ w.T, atol=1e-4)
    check(topi.nn.dense_pack, [x, packed, bias], x @ w.T + bias, atol=1e-4)
    with pytest.raises(ValueError, match="dense_pack: expected factors with a common length"):
        topi.nn.dense_pack(te.placeholder((5, 6)), te.placeholder((3, 7, 4)))


def test_bias_along_an_axis():
    x, bias = values(2, 3, 4), values(3, seed=1)
    check(topi.nn.bias_add, [x, bias], x + bias[:, None])
    check(lambda x, b: topi.nn.bias_add(x, b, -2), [x, bias], x + bias[:, None])
    with pytest.raises(ValueError, match="bias_add: expected an axis"):
        topi.nn.bias_add(te.placeholder((2, 3)), te.placeholder((3,)), 2)


def test_wrong_arguments():
    A, B = te.placeholder((4, 5)), te.placeholder((4, 6))
    with pytest.raises(
        ValueError, match=r"matmul: expected factors with a common length, got \(4, 5\)"
    ):
        topi.broadcast_matmul(A, B)
    with pytest.raises(ValueError, match="einsum: expected one size for j"):
        topi.einsum("ij,kj->ik", A, B)
    with pytest.raises(ValueError, match="einsum: expected 1 operands"):
        topi.einsum("ij", A, B)
    Q = te.placeholder((1, 4, 3, 2))
    with pytest.raises(
        ValueError, match="attention: expected heads of queries that are a multiple"
    ):
        topi.nn.attention(Q, te.placeholder((1, 4, 2, 2)), te.placeholder((1, 4, 2, 2)))
    with pytest.raises(ValueError, match="attention: expected causal_mask"):
        topi.nn.attention(Q, Q, Q, causal_mask="Middle")
