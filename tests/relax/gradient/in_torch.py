# SPDX-License-Identifier: Apache-2.0
"""Operators of the database in PyTorch, which differentiates them: {name: function(*parameters,
**attributes)}. What the database has in PyTorch already is not repeated.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

# Flat wherever they are defined, or whose result does not depend on the argument: PyTorch has no
# gradient of them, or zeros.
FLAT = """ones_like zeros_like eye_like isfinite isinf isnan sign ceil floor trunc round
floor_divide equal greater greater_equal less less_equal not_equal argmax argmin argsort""".split()


def _unary():
    same = """cos cosh exp sin sinh tan tanh acos asin atan acosh asinh atanh erf log sqrt rsqrt
    sigmoid abs negative square""".split()
    table = {name: getattr(torch, name) for name in same}
    table |= {f"nn.{name}": getattr(F, name) for name in ("relu", "gelu", "selu", "silu")}
    table["nn.gelu_tanh"] = lambda x: F.gelu(x, approximate="tanh")
    table["nn.leakyrelu"] = lambda x, alpha=0.01: F.leaky_relu(x, alpha)
    table["nn.softplus"] = lambda x, beta=1.0, threshold=20.0: F.softplus(x, beta, threshold)
    table["clip"] = torch.clip
    return table


def _binary():
    return {
        "add": torch.add, "subtract": torch.subtract, "multiply": torch.multiply,
        "divide": torch.divide, "maximum": torch.maximum, "minimum": torch.minimum,
        "mod": torch.fmod, "floor_mod": torch.remainder, "power": torch.pow,
        "log_add_exp": torch.logaddexp, "ewise_fma": lambda a, b, c: a * b + c,
        "where": torch.where, "outer": torch.outer,
        "matmul": lambda a, b, out_dtype=None: torch.matmul(a, b),
        "einsum": lambda operands, subscripts: torch.einsum(subscripts, *operands),
    }  # fmt: skip


# ---- reductions ----------------------------------------------------------------------------------
def _axes(x, axis):
    if axis is None:
        return list(range(x.ndim))
    return [a % x.ndim for a in ([axis] if isinstance(axis, int) else axis)]


def _reduced(function):
    def call(x, axis=None, keepdims=False):
        return function(x, _axes(x, axis), keepdims)

    return call


def _product(x, axes, keepdims):
    for axis in sorted(axes, reverse=True):
        x = x.prod(axis, keepdim=keepdims)
    return x


def _median(x, axis=None, keepdims=False):
    if axis is None:
        return x.reshape(-1).median()
    (axis,) = _axes(x, axis)
    values, indices = x.median(axis, keepdim=keepdims)
    return values, indices


def _scan(function, first):
    def call(x, axis=None, dtype=None, exclusive=False):
        if axis is None:
            x, axis = x.reshape(-1), 0
        y = function(x, axis)
        if exclusive:
            y = y.narrow(axis, 0, x.shape[axis] - 1)
            y = torch.cat([torch.full_like(x.narrow(axis, 0, 1), first), y], axis)
        return y

    return call


def _topk(x, k=1, axis=-1, ret_type="both", largest=True, dtype="int32"):
    return tuple(x.topk(k if k > 0 else x.shape[axis], axis, largest))


def _reductions():
    return {
        "sum": _reduced(lambda x, axes, keep: x.sum(axes, keep)),
        "mean": _reduced(lambda x, axes, keep: x.mean(axes, keep)),
        "max": _reduced(lambda x, axes, keep: x.amax(axes, keep)),
        "min": _reduced(lambda x, axes, keep: x.amin(axes, keep)),
        "prod": _reduced(_product),
        "std": _reduced(lambda x, axes, keep: x.std(axes, correction=0, keepdim=keep)),
        "variance": _reduced(lambda x, axes, keep: x.var(axes, correction=0, keepdim=keep)),
        "median": _median,
        "cumsum": _scan(torch.cumsum, 0.0),
        "cumprod": _scan(torch.cumprod, 1.0),
        "sort": lambda x, axis=-1, descending=False: x.sort(axis, descending)[0],
        "topk": _topk,
        "nn.softmax": lambda x, axis=-1: x.softmax(axis),
        "nn.log_softmax": lambda x, axis=-1: x.log_softmax(axis),
    }


# ---- normalisation, losses -----------------------------------------------------------------------
def _along(values, x, axis):
    shape = [1] * x.ndim
    shape[axis] = -1
    return values.reshape(shape)


def _scaled(y, x, gamma, beta, axis, center, scale):
    y = y * _along(gamma, x, axis) if scale else y
    return y + _along(beta, x, axis) if center else y


def _batch_norm(
    x, gamma, beta, mean, var, axis, epsilon=1e-5, center=True, scale=True, momentum=0.1,
    training=True,
):  # fmt: skip
    y = F.batch_norm(x.movedim(axis, 1), mean, var, None, None, training, momentum, epsilon)
    return _scaled(y.movedim(1, axis), x, gamma, beta, axis, center, scale)


def _layer_norm(x, gamma, beta, axes=-1, epsilon=1e-5, center=True, scale=True):
    axes = _axes(x, axes)
    y = (x - x.mean(axes, True)) / (x.var(axes, correction=0, keepdim=True) + epsilon).sqrt()
    shape = [x.shape[a] if a in axes else 1 for a in range(x.ndim)]
    y = y * gamma.reshape(shape) if scale else y
    return y + beta.reshape(shape) if center else y


def _rms_norm(x, weight, axes=-1, epsilon=1e-5):
    axes = _axes(x, axes)
    shape = [x.shape[a] if a in axes else 1 for a in range(x.ndim)]
    return x / (x.square().mean(axes, True) + epsilon).sqrt() * weight.reshape(shape)


def _group_norm(
    x, gamma, beta, num_groups, channel_axis, axes, epsilon=1e-5, center=True, scale=True
):
    y = F.group_norm(x.movedim(channel_axis, 1), num_groups, eps=epsilon).movedim(1, channel_axis)
    return _scaled(y, x, gamma, beta, channel_axis, center, scale)


def _instance_norm(x, gamma, beta, channel_axis, axes, epsilon=1e-5, center=True, scale=True):
    y = F.instance_norm(x.movedim(channel_axis, 1), eps=epsilon).movedim(1, channel_axis)
    return _scaled(y, x, gamma, beta, channel_axis, center, scale)


def _cross_entropy(predictions, labels):
    return -(predictions * labels).sum() / (1 if predictions.ndim == 1 else len(predictions))


def _max_pool(d):
    pool = getattr(F, f"max_pool{d}d")

    def call(x, pool_size=1, strides=1, padding=0, dilation=1, ceil_mode=False):
        return pool(x, pool_size, strides, padding, dilation, ceil_mode)

    return call


def _avg_pool(d):
    pool, conv = getattr(F, f"avg_pool{d}d"), getattr(F, f"conv{d}d")

    def call(
        x, pool_size=1, strides=1, padding=0, dilation=1, ceil_mode=False,
        count_include_pad=d != 2,
    ):  # fmt: skip
        if dilation == 1:
            return pool(x, pool_size, strides, padding, ceil_mode, count_include_pad)
        assert padding == 0  # PyTorch has no such pool: a product with equal weights is one
        channels = x.shape[1]
        weight = torch.full([channels, 1] + [pool_size] * d, 1 / pool_size**d, dtype=x.dtype)
        return conv(x, weight, None, strides, 0, dilation, channels)

    return call


def _avg_pool_backward(grad, x, pool_size=(1, 1), strides=(1, 1)):
    x = x.detach().requires_grad_(True)
    y = F.avg_pool2d(x, pool_size, strides)
    return torch.autograd.grad(y, x, grad, create_graph=True)[0]


def _networks():
    return {
        **{f"nn.max_pool{d}d": _max_pool(d) for d in (1, 2, 3)},
        **{f"nn.avg_pool{d}d": _avg_pool(d) for d in (1, 2, 3)},
        "grad.avg_pool2d_backward": _avg_pool_backward,
        "nn.prelu": lambda x, alpha, axis=1: torch.where(x > 0, x, x * _along(alpha, x, axis)),
        "nn.batch_norm": _batch_norm,
        "nn.layer_norm": _layer_norm,
        "nn.rms_norm": _rms_norm,
        "nn.group_norm": _group_norm,
        "nn.instance_norm": _instance_norm,
        "nn.cross_entropy_with_logits": _cross_entropy,
        "nn.pad": _pad,
        "grad.take_backward": _take_backward,
    }


def _pad(x, pad_width, pad_mode="constant", pad_value=0.0):
    width = [n for pair in zip(pad_width[::2], pad_width[1::2], strict=True) for n in pair]
    pairs = [width[i : i + 2] for i in range(0, len(width), 2)]
    if pad_mode == "constant":
        return F.pad(x, sum(reversed(pairs), []), value=pad_value)
    assert pairs[0] == [0, 0]
    return F.pad(x[None], pairs[1], pad_mode)[0]


def _take_backward(grad, x, indices, axis=None):
    axis = 0 if axis is None else axis
    return torch.zeros_like(x).index_add(axis, indices.long(), grad)


# ---- indexing ------------------------------------------------------------------------------------
def _take(x, indices, axis=None, mode="fast"):
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis % x.ndim)
    picked = x.index_select(axis, indices.reshape(-1).long() % x.shape[axis])
    return picked.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def _strided_slice(x, axes, begin, end, strides=None, assume_inbound=False):
    cuts = [slice(None)] * x.ndim
    for i, axis in enumerate(axes):
        cuts[axis] = slice(begin[i], end[i], strides[i] if strides else 1)
    return x[tuple(cuts)]


def _gather_nd(x, indices, batch_dims=0):
    return x[tuple(indices.long().movedim(-1, 0))]


def _index_put(x, indices, values, accumulate=False):
    return x.index_put(tuple(i.long() for i in indices), values, accumulate)


def _scatter_elements(x, indices, updates, axis=0, reduction="update"):
    scatter = x.scatter_add if reduction == "add" else x.scatter
    return scatter(axis, indices.long(), updates)


def _scatter_nd(x, indices, updates, reduction="update"):
    return x.index_put(tuple(indices.long().movedim(-1, 0)), updates, reduction == "add")


def _indexing():
    return {
        "take": _take,
        "strided_slice": _strided_slice,
        "slice_scatter": lambda x, src, start, end, step, axis=0: x.slice_scatter(
            src, axis, start, end, step
        ),
        "gather_elements": lambda x, i, axis=0: _gather_along(x, i.long(), axis),
        "gather_nd": _gather_nd,
        "index_tensor": lambda x, indices: x[tuple(i.long() for i in indices)],
        "index_put": _index_put,
        "scatter_elements": _scatter_elements,
        "scatter_nd": _scatter_nd,
    }


def _gather_along(x, indices, axis):
    return x.gather(axis, indices % x.shape[axis])


# ---- shapes --------------------------------------------------------------------------------------
def _collapse(x, shape):
    x = x.sum(list(range(x.ndim - len(shape)))) if x.ndim > len(shape) else x
    axes = [a for a, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m]
    return x.sum(axes, keepdim=True) if axes else x


def _expand_dims(x, axis):
    axes = [axis] if isinstance(axis, int) else axis
    for a in sorted(a % (x.ndim + len(axes)) for a in axes):
        x = x.unsqueeze(a)
    return x


def _squeeze(x, axis=None):
    return x.squeeze() if axis is None else x.squeeze(tuple(_axes(x, axis)))


def _split(x, indices_or_sections, axis=0):
    if isinstance(indices_or_sections, int):
        return x.split(math.ceil(x.shape[axis] / indices_or_sections), axis)
    return x.tensor_split([int(i) for i in indices_or_sections], axis)


def _repeat(x, repeats, axis=None):
    return x.repeat_interleave(repeats, axis)


def _layout_transform(x, index_map, pad_value=None, *_, **__):
    """Elements go where the map says."""
    places = [
        [int(i) for i in index_map.map_indices(list(index))] for index in np.ndindex(*x.shape)
    ]
    shape = [int(d) for d in index_map.map_shape(list(x.shape))]
    to = tuple(torch.tensor(list(column)) for column in zip(*places, strict=True))
    return torch.full(shape, float(pad_value or 0), dtype=x.dtype).index_put(to, x.reshape(-1))


def _shapes():
    return {
        "full_like": lambda x, value, dtype=None: value.expand(x.shape),
        "full": lambda shape, value, dtype=None: value.expand(shape),
        "tril": lambda x, k=0: x.tril(k),
        "triu": lambda x, k=0: x.triu(k),
        "astype": lambda x, dtype: x.to(getattr(torch, dtype)),
        "wrap_param": lambda x, dtype: x.to(getattr(torch, dtype)),
        "grad.start_checkpoint": lambda x: x,
        "grad.end_checkpoint": lambda x: x,
        "reshape": lambda x, shape: x.reshape(tuple(shape)),
        "broadcast_to": lambda x, shape: x.expand(tuple(shape)),
        "collapse_sum_to": lambda x, shape: _collapse(x, tuple(shape)),
        "collapse_sum_like": lambda x, y: _collapse(x, y.shape),
        "flatten": lambda x: x.reshape(-1),
        "expand_dims": _expand_dims,
        "squeeze": _squeeze,
        "permute_dims": lambda x, axes=None: x.permute(axes or list(range(x.ndim))[::-1]),
        "layout_transform": _layout_transform,
        "concat": lambda xs, axis=0: torch.cat(xs, axis),
        "stack": lambda xs, axis=0: torch.stack(xs, axis),
        "split": _split,
        "repeat": _repeat,
        "tile": lambda x, repeats: x.tile(tuple(repeats)),
        "flip": lambda x, axis: x.flip(axis),
        "meshgrid": lambda xs, indexing="ij": torch.meshgrid(*xs, indexing=indexing),
    }


TABLE = _unary() | _binary() | _reductions() | _networks() | _indexing() | _shapes()


def function_of(entry):
    """An operator in PyTorch, or None."""
    return TABLE.get(entry.name) or getattr(entry.reference, "__wrapped__", None)
