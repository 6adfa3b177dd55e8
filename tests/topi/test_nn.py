# SPDX-License-Identifier: Apache-2.0
"""Activations, normalisation, padding and losses against PyTorch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tvm import te, topi

from .checking import blocks, check, compiled, values

A = values(4, 5, 6)
EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-3, -1e-3, 25, -25, 90, -90], "float32")


def of(function, *arrays, **options):
    """What PyTorch makes of arrays."""
    result = function(*(torch.from_numpy(np.ascontiguousarray(a)) for a in arrays), **options)
    return [r.numpy() for r in result] if isinstance(result, tuple) else result.numpy()


ACTIVATIONS = {
    "relu": (topi.nn.relu, F.relu),
    "leaky_relu": (lambda x: topi.nn.leaky_relu(x, 0.1), lambda x: F.leaky_relu(x, 0.1)),
    "softplus": (topi.nn.softplus, F.softplus),
    "steep softplus": (lambda x: topi.nn.softplus(x, 2.0, 5.0), lambda x: F.softplus(x, 2, 5)),
    "gelu": (topi.nn.gelu, F.gelu),
    "gelu_tanh": (topi.nn.gelu_tanh, lambda x: F.gelu(x, approximate="tanh")),
    "silu": (topi.nn.silu, F.silu),
    "selu": (topi.nn.selu, F.selu),
    "softmax": (topi.nn.softmax, lambda x: F.softmax(x, -1)),
    "fast_softmax": (topi.nn.fast_softmax, lambda x: F.softmax(x, -1)),
    "log_softmax": (topi.nn.log_softmax, lambda x: F.log_softmax(x, -1)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    op, reference = ACTIVATIONS[name]
    for a in (A, values(3, 0), values(2, 300)):
        check(op, [a], of(reference, a))
    check(op, [A], of(reference, A), symbolic=True)
    if "max" not in name:
        # In double precision: PyTorch's gelu of an infinite float is NaN.
        check(op, [EDGES], of(reference, EDGES.astype("float64")).astype("float32"))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_along_axes(axis):
    large = A * 1000
    check(lambda x: topi.nn.softmax(x, axis), [large], of(F.softmax, large, dim=axis))
    check(lambda x: topi.nn.log_softmax(x, axis), [large], of(F.log_softmax, large, dim=axis))
    masked = np.where(A > 0, A, -np.inf).astype("float32")
    masked[0, 0] = 1
    check(lambda x: topi.nn.softmax(x, 2), [masked], of(F.softmax, masked, dim=2))


def test_prelu():
    slope = values(5, seed=1)
    check(topi.nn.prelu, [A, slope], of(F.prelu, A, slope))
    one = values(1, seed=1)
    check(topi.nn.prelu, [A, one], of(F.prelu, A, one))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_layer_norm(dtype):
    tolerance = {"rtol": 1e-2, "atol": 1e-2} if dtype == "float16" else {"rtol": 1e-4}
    a = A.astype(dtype)
    g, b = values(5, 6, seed=1, dtype=dtype), values(5, 6, seed=2, dtype=dtype)
    expected = of(
        F.layer_norm,
        a,
        normalized_shape=(5, 6),
        weight=torch.from_numpy(g),
        bias=torch.from_numpy(b),
    )
    build = lambda x, g, b: topi.nn.layer_norm(x, g, b, [1, 2])
    check(build, [a, g, b], expected, **tolerance)
    check(build, [a, g, b], expected, symbolic=True, **tolerance)
    plain = of(F.layer_norm, a, normalized_shape=(6,))
    check(lambda x: topi.nn.layer_norm(x, None, None, -1), [a], plain, **tolerance)


def test_other_norms():
    x, g, b = values(2, 6, 4, 5), values(6, seed=1), values(6, seed=2)
    tensors = {"weight": torch.from_numpy(g), "bias": torch.from_numpy(b)}
    expected = of(F.group_norm, x, num_groups=3, **tensors)
    build = lambda x, g, b: topi.nn.group_norm(x, g, b, 3, 1, [2, 3])
    check(build, [x, g, b], expected, rtol=1e-4, atol=1e-4)
    expected = of(F.instance_norm, x, **tensors)
    build = lambda x, g, b: topi.nn.instance_norm(x, g, b, 1, [2, 3])
    check(build, [x, g, b], expected, rtol=1e-4, atol=1e-4)
    w = values(5, seed=3)
    expected = of(F.rms_norm, x, normalized_shape=(5,), weight=torch.from_numpy(w), eps=1e-5)
    for symbolic in (False, True):
        check(lambda x, w: topi.nn.rms_norm(x, w, -1), [x, w], expected, symbolic=symbolic)
    half = x.astype("float16")
    check(
        lambda x, w: topi.nn.rms_norm(x, w, -1),
        [half, w.astype("float16")],
        expected,
        rtol=1e-2,
        atol=1e-2,
    )
    expected = of(F.local_response_norm, x, size=3, alpha=1e-2, beta=0.7, k=1.5)
    check(lambda x: topi.nn.lrn(x, 3, 1, 1e-2, 0.7, 1.5), [x], expected)


def test_batch_norm():
    x, g, b, m = values(3, 6, 4, 5), values(6, seed=1), values(6, seed=2), values(6, seed=3)
    v = values(6, seed=4, low=1)
    expected = of(F.batch_norm, x, m, v, weight=torch.from_numpy(g), bias=torch.from_numpy(b))
    build = lambda x, g, b, m, v: topi.nn.batch_norm(x, g, b, m, v, 1, 1e-5)
    check(build, [x, g, b, m, v], [expected, m, v], rtol=1e-4, atol=1e-4)
    check(build, [x, g, b, m, v], [expected, m, v], symbolic=True, rtol=1e-4, atol=1e-4)
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    shape = (1, 6, 1, 1)
    expected = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + 1e-5)
    build = lambda x, g, b, m, v: topi.nn.batch_norm(
        x, g, b, m, v, 1, 1e-5, False, False, True, 0.2
    )
    moved = [0.8 * m + 0.2 * mean, 0.8 * v + 0.2 * variance]
    check(build, [x, g, b, m, v], [expected, *moved], rtol=1e-4, atol=1e-4)


def test_padding():
    x = values(2, 5, 6)
    pads = [(0, 0), (2, 1), (1, 3)]
    before, after = zip(*pads, strict=True)
    modes = {"reflect_pad": "reflect", "replicate_pad": "edge", "circular_pad": "wrap"}
    for name, mode in modes.items():
        op = getattr(topi.nn, name)
        check(lambda t, op=op: op(t, before, after), [x], np.pad(x, pads, mode))
    check(lambda t: topi.nn.mirror_pad(t, before, after), [x], np.pad(x, pads, "symmetric"))
    expected = np.pad(x, pads, constant_values=7)
    check(lambda t: topi.nn.pad(t, before, after, 7), [x], expected)
    check(lambda t: topi.nn.pad(t, before, after, 7.0), [x], expected, symbolic=True)
    check(
        lambda t: topi.nn.pad(t, (0, -1, 2), (0, 1, -2)),
        [x],
        np.pad(x[:, 1:, :-2], [(0, 0), (0, 1), (2, 0)]),
    )
    spread = np.zeros((2, 9, 16), "float32")
    spread[:, ::2, ::3] = x
    check(lambda t: topi.nn.dilate(t, (1, 2, 3)), [x], spread)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_nll_loss(reduction):
    p, w = values(4, 5, 3), values(5, seed=1, low=0.5)
    t = np.random.default_rng(0).integers(0, 5, (4, 3))
    t[1, 1] = 2
    options = {"reduction": reduction, "ignore_index": 2}
    expected = of(F.nll_loss, p, t, weight=torch.from_numpy(w), **options)
    build = lambda p, t, w: topi.nn.nll_loss(p, t, w, reduction, 2)
    check(build, [p, t, w], expected)
    check(
        lambda p, t: topi.nn.nll_loss(p, t, None, reduction, 2),
        [p, t],
        of(F.nll_loss, p, t, **options),
    )
    x = torch.from_numpy(p).requires_grad_()
    loss = F.nll_loss(x, torch.from_numpy(t), weight=torch.from_numpy(w), **options)
    g = np.asarray(values(*loss.shape, seed=5))
    loss.backward(torch.from_numpy(g))
    build = lambda g, p, t, w: topi.nn.nll_loss_backward(g, p, t, w, reduction, 2)
    check(build, [g, p, t, w], x.grad.numpy())


def test_cross_entropy():
    p, labels = values(4, 5), values(4, 5, seed=1)
    expected = np.float32(-(p * labels).sum() / 4)
    check(topi.nn.cross_entropy_with_logits, [p, labels], expected)


def test_scale_shift():
    x, s, b = values(2, 3, 4, 5), values(3, seed=1), values(3, seed=2)
    expected = x * s[:, None, None] + b[:, None, None]
    check(topi.nn.scale_shift_nchw, [x, s, b], expected)
    check(
        topi.nn.scale_shift_nhwc,
        [x.transpose(0, 2, 3, 1).copy(), s, b],
        expected.transpose(0, 2, 3, 1),
    )


BLOCKS = {
    "relu": ["compute"],
    "silu": ["compute", "T_multiply"],
    "gelu": ["T_multiply", "compute", "T_multiply_1", "T_add", "T_multiply_2"],
    "softmax": ["T_softmax_maxelem", "T_softmax_exp", "T_softmax_expsum", "T_softmax_norm"],
    "log_softmax": ["T_softmax_maxelem", "compute", "compute_1"],
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name):
    assert blocks(compiled(getattr(topi.nn, name), [A]).func) == BLOCKS[name]


def test_blocks_of_norms():
    x, c = values(2, 6, 4), values(4, seed=1)
    names = lambda build, *arrays: blocks(compiled(build, arrays).func)
    layer = lambda x, g: topi.nn.layer_norm(x, g, None, 2)
    assert names(layer, x, c) == ["A0_red_temp", "T_layer_norm"]
    rms = ["T_cast", "T_multiply", "T_multiply_red", "rsqrt", "T_cast_1", "T_rms_norm", "T_cast_2"]
    assert names(lambda x, w: topi.nn.rms_norm(x, w, 2), x, c) == rms
    group = lambda x, g, b: topi.nn.group_norm(x, g, b, 2, 1, [2])
    assert names(group, x, values(6), values(6, seed=1)) == [
        *("T_reshape", "T_cast", "T_cast_red_temp", "T_reshape_1", "T_reshape_2"),
        *("T_group_norm", "T_reshape_3"),
    ]


def test_wrong_arguments():
    X = te.placeholder((2, 6, 4))
    with pytest.raises(
        ValueError, match=r"layer_norm: expected parameters shaped \(4,\), got \(5,"
    ):
        topi.nn.layer_norm(X, te.placeholder((5,)), None, 2)
    with pytest.raises(ValueError, match="group_norm: expected groups that divide"):
        topi.nn.group_norm(X, None, None, 4, 1, [2])
    with pytest.raises(ValueError, match="mirror_pad: expected mode"):
        topi.nn.mirror_pad(X, (0, 0, 1), mode="EDGE")
    with pytest.raises(ValueError, match="pad: expected a number per axis of"):
        topi.nn.pad(X, (1,))
