# SPDX-License-Identifier: Apache-2.0
"""Softmax, normalisation, losses, products, attention."""

import numpy as np

__all__ = [
    "attention_python",
    "batch_matmul",
    "batch_norm",
    "dense",
    "group_norm_python",
    "instance_norm_python",
    "l2_normalize_python",
    "layer_norm_python",
    "log_softmax_python",
    "lrn_python",
    "nll_loss",
    "rms_norm_python",
    "softmax_python",
]


def softmax_python(a_np, axis=1):
    """exp(a) divided by its sum along an axis."""
    e = np.exp(a_np - a_np.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax_python(a_np, axis=1):
    """The logarithm of softmax."""
    moved = a_np - a_np.max(axis, keepdims=True)
    return moved - np.log(np.exp(moved).sum(axis, keepdims=True))


def _normalized(x, axes, epsilon):
    wide = x.astype("float64")
    centered = wide - wide.mean(axes, keepdims=True)
    return centered / np.sqrt(wide.var(axes, keepdims=True) + epsilon)


def _along(parameter, axes, ndim):
    """A parameter of some axes as one that broadcasts with all."""
    shape = [1] * ndim
    for axis, size in zip(axes, parameter.shape, strict=True):
        shape[axis] = size
    return parameter.reshape(shape)


def _scaled(x, dtype, gamma, beta, axes):
    x = x if gamma is None else x * _along(gamma, axes, x.ndim)
    x = x if beta is None else x + _along(beta, axes, x.ndim)
    return x.astype(dtype)


def _axes(axis, ndim):
    return tuple(a % ndim for a in ((axis,) if np.isscalar(axis) else axis))


def layer_norm_python(data, gamma, beta, axis, epsilon=1e-5):
    """Normalised along axes, which the parameters have."""
    axes = _axes(axis, data.ndim)
    return _scaled(_normalized(data, axes, epsilon), data.dtype, gamma, beta, axes)


def instance_norm_python(data, gamma, beta, axis, epsilon=1e-5):
    """Normalised along axes; parameters of channel 1."""
    axes = _axes(axis, data.ndim)
    return _scaled(_normalized(data, axes, epsilon), data.dtype, gamma, beta, (1,))


def group_norm_python(data, gamma, beta, num_groups, channel_axis, axes, epsilon=1e-5):
    """Normalised along axes and groups of channels; parameters of channels."""
    channel = channel_axis % data.ndim
    shape = [*data.shape[:channel], num_groups, -1, *data.shape[channel + 1 :]]
    over = (channel + 1, *(a if a < channel else a + 1 for a in _axes(axes, data.ndim)))
    normal = _normalized(data.reshape(shape), over, epsilon).reshape(data.shape)
    return _scaled(normal, data.dtype, gamma, beta, (channel,))


def rms_norm_python(data, weight, axis, epsilon=1e-5):
    """Divided by the root of the mean square, then scaled."""
    axes = _axes(axis, data.ndim)
    wide = data.astype("float64")
    root = np.sqrt((wide**2).mean(axes, keepdims=True) + epsilon)
    return _scaled(wide / root, data.dtype, weight, None, axes)


def batch_norm(
    x, gamma, beta, moving_mean, moving_var, axis, epsilon, center, scale, training, momentum
):
    """The result, the new mean and the new variance."""
    mean, variance = moving_mean, moving_var
    if training:
        others = tuple(d for d in range(x.ndim) if d != axis % x.ndim)
        mean, variance = x.mean(others), x.var(others)
    normal = x - _along(mean, (axis,), x.ndim)
    normal = normal / np.sqrt(_along(variance, (axis,), x.ndim) + epsilon)
    result = _scaled(normal, x.dtype, gamma if scale else None, beta if center else None, (axis,))
    if not training:
        return [result, moving_mean, moving_var]
    moved = lambda old, new: (1 - momentum) * old + momentum * new
    return [result, moved(moving_mean, mean), moved(moving_var, variance)]


def l2_normalize_python(a_np, eps, axis=None):
    """Divided by the root of the sum of squares."""
    total = (a_np**2).sum(tuple(axis) if axis is not None else None, keepdims=True)
    return a_np / np.sqrt(np.maximum(total, eps))


def lrn_python(a_np, size, axis, bias, alpha, beta):
    """Normalised by the squares of neighbours along an axis."""
    pads = [(size // 2, size // 2) if d == axis else (0, 0) for d in range(a_np.ndim)]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(a_np**2, pads), size, axis)
    return a_np / (bias + alpha * windows.sum(-1) / size) ** beta


def nll_loss(predictions, targets, weights, reduction="mean", ignore_index=-100):
    """The negative log likelihood of targets."""
    channel = 0 if predictions.ndim == 1 else 1
    kept = targets != ignore_index
    index = np.where(kept, targets, 0)
    taken = np.take_along_axis(predictions, np.expand_dims(index, channel), channel)
    used = np.where(kept, weights[index], 0)
    losses = -taken.squeeze(channel) * used
    if reduction == "mean":
        return losses.sum() / used.sum()
    return losses.sum() if reduction == "sum" else losses


def batch_matmul(x, y, out_dtype=None, trans_x=False, trans_y=True):
    """Products of the matrices of two batches."""
    x = x.swapaxes(1, 2) if trans_x else x
    y = y.swapaxes(1, 2) if trans_y else y
    dtype = out_dtype or x.dtype
    return x.astype(dtype) @ y.astype(dtype)


def dense(x, y, bias, use_bias=False, use_relu=False, out_dtype=None):
    """x times the transposed y."""
    dtype = out_dtype or x.dtype
    result = x.astype(dtype) @ y.astype(dtype).T
    result = result + bias if use_bias else result
    return np.maximum(result, 0) if use_relu else result


def attention_python(q, k, v, bias, qk_scale, causal, window_size=None, layout="BSNH"):
    """(the result, the products of queries and keys), of heads side by side or outside."""
    heads_inside = layout == "BSNH"
    if heads_inside:
        q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
    k, v = (x.repeat(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * qk_scale
    scores = scores if bias is None else scores + bias
    row, column = np.ogrid[: scores.shape[-2], : scores.shape[-1]]
    row = row + (scores.shape[-1] - scores.shape[-2] if causal == "BottomRight" else 0)
    allowed = np.ones(scores.shape[-2:], bool)
    if causal != "none" and causal is not None:
        allowed &= column <= row
        if window_size is not None:
            allowed &= column > row - window_size
    scores = np.where(allowed, scores, -np.inf)
    result = softmax_python(scores, -1) @ v
    return (result.transpose(0, 2, 1, 3) if heads_inside else result), scores
