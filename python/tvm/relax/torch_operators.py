# SPDX-License-Identifier: Apache-2.0
"""Operators of graphs as functions of PyTorch: {name: function(attributes, *arguments)}. Others are
compiled."""

import functools


def _torch(name):
    """A function of PyTorch of the arguments alone, found when it is called."""

    def call(attrs, *args):
        import torch

        return functools.reduce(getattr, name.split("."), torch)(*args)

    return call


def _dtype(name):
    import torch

    return getattr(torch, str(name))


def _ints(values):
    return None if values is None else [int(v) for v in values]


def _reduce(name):
    def call(attrs, x):
        import torch

        axes = _ints(attrs.axis)
        axes = list(range(x.ndim)) if axes is None else axes
        return getattr(torch, name)(x, dim=axes, keepdim=bool(attrs.keepdims))

    return call


def _matmul(attrs, a, b):
    import torch

    out = str(attrs.out_dtype) if attrs.out_dtype is not None else "void"
    result = torch.matmul(a, b)
    return result if out in ("", "void") else result.to(_dtype(out))


def _permute(attrs, x):
    return x.permute(_ints(attrs.axes) or list(range(x.ndim))[::-1])


def _softmax(name):
    def call(attrs, x):
        import torch

        return getattr(torch, name)(x, dim=int(attrs.axis))

    return call


def _take(attrs, x, indices):
    import torch

    axis = attrs.axis
    x, axis = (x.reshape(-1), 0) if axis is None else (x, int(axis) % x.ndim)
    picked = torch.index_select(x, axis, indices.reshape(-1).to(torch.int64))
    return picked.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def _split(attrs, x):
    import torch

    where = attrs.indices_or_sections
    axis = int(attrs.axis)
    if hasattr(where, "value"):
        size = -(-x.shape[axis] // int(where))
        return tuple(torch.split(x, size, axis))
    return tuple(torch.tensor_split(x, _ints(where), axis))


def _squeeze(attrs, x):
    axes = _ints(attrs.axis)
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


def _expand_dims(attrs, x):
    axes = [a % (x.ndim + len(attrs.axis)) for a in _ints(attrs.axis)]
    for axis in sorted(axes):
        x = x.unsqueeze(axis)
    return x


def _layer_norm(attrs, x, gamma, beta):
    import torch

    axes = sorted(a % x.ndim for a in _ints(attrs.axes))
    if axes != list(range(x.ndim - len(axes), x.ndim)):
        raise NotImplementedError(f"layer_norm: expected the last axes for PyTorch, got {axes}")
    shape = [x.shape[a] for a in axes]
    return torch.nn.functional.layer_norm(x, shape, gamma, beta, float(attrs.epsilon))


def _gelu_tanh(attrs, x):
    import torch

    return torch.nn.functional.gelu(x, approximate="tanh")


_SAME = """abs acos asin atan ceil cos cosh exp floor log negative round rsqrt sigmoid sign sin sinh
sqrt square tan tanh trunc erf add subtract multiply power maximum minimum equal not_equal less
less_equal greater greater_equal logical_and logical_or logical_not where"""

OPERATORS = {
    **{name: _torch(name) for name in _SAME.split()},
    **{f"nn.{name}": _torch(f"nn.functional.{name}") for name in ("relu", "silu", "relu6", "gelu")},
    "nn.gelu_tanh": _gelu_tanh,
    "divide": lambda attrs, a, b: (a / b).to(a.dtype) if a.is_floating_point() else a // b,
    "sum": _reduce("sum"),
    "mean": _reduce("mean"),
    "max": _reduce("amax"),
    "min": _reduce("amin"),
    "matmul": _matmul,
    "permute_dims": _permute,
    "reshape": lambda attrs, x, shape: x.reshape(tuple(shape)),
    "broadcast_to": lambda attrs, x, shape: x.expand(tuple(shape)),
    "nn.softmax": _softmax("softmax"),
    "nn.log_softmax": _softmax("log_softmax"),
    "nn.layer_norm": _layer_norm,
    "take": _take,
    "split": _split,
    "squeeze": _squeeze,
    "expand_dims": _expand_dims,
    "astype": lambda attrs, x: x.to(_dtype(attrs.dtype)),
}


def _concat(attrs, tensors):
    import torch

    return torch.cat(list(tensors), int(attrs.axis or 0))


OPERATORS["concat"] = _concat
