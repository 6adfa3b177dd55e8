# SPDX-License-Identifier: Apache-2.0
"""Entries of the operators of neural networks; PyTorch is the reference."""

import functools

import numpy as np
import torch
import torch.nn.functional as F

from .core import T, case, entry, with_dtypes


def by_torch(function):
    """Arrays to tensors and back."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        def convert(x):
            return torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x

        result = function(*map(convert, args), **{k: convert(v) for k, v in kwargs.items()})
        if isinstance(result, (tuple, list)):
            return tuple(r.numpy() for r in result)
        return result.numpy()

    return call


# ---- convolutions -------------------------------------------------------------------------------
def _spread(value, d):
    return [value] * d if isinstance(value, int) else list(value) * (d // len(value))


def _pads(padding, d):
    """(begins, ends) of 1, d or 2 d numbers."""
    padding = [padding] if isinstance(padding, int) else list(padding)
    if len(padding) == 1:
        padding = padding * d
    if len(padding) == d:
        padding = padding * 2
    return padding[:d], padding[d:]


def _to(x, layout, canonical):
    """From a layout of plain letters to the canonical one."""
    return x.permute([layout.index(letter) for letter in canonical])


def _conv(d):
    canonical = "NC" + "DHW"[-d:]
    kernel = "OI" + "DHW"[-d:]

    def call(x, w, strides=1, padding=0, dilation=1, groups=1, **other):
        layout = other.get("data_layout", canonical)
        x = _to(x, layout, canonical)
        w = _to(w, other.get("kernel_layout", kernel), kernel)
        begin, end = _pads(padding, d)
        pads = [p for pair in zip(reversed(begin), reversed(end), strict=True) for p in pair]
        own = str(x.dtype).removeprefix("torch.")
        x, w = x.double(), w.double()
        conv = (F.conv1d, F.conv2d, F.conv3d)[d - 1]
        y = conv(F.pad(x, pads), w, None, _spread(strides, d), 0, _spread(dilation, d), groups)
        dtype = other.get("out_dtype", own)
        return _to(y, canonical, other.get("out_layout", layout)).to(getattr(torch, dtype))

    return by_torch(call)


def _conv_transpose(d):
    def call(x, w, strides=1, padding=0, output_padding=0, dilation=1, groups=1):
        conv = (F.conv_transpose1d, F.conv_transpose2d)[d - 1]
        begin, end = _pads(padding, d)
        assert begin == end
        stride, extra = _spread(strides, d), _spread(output_padding, d)
        y = conv(x.double(), w.double(), None, stride, begin, extra, groups, _spread(dilation, d))
        return y.to(x.dtype)

    return by_torch(call)


entry(
    "nn.conv1d",
    _conv(1),
    [
        case(T(2, 3, 16), T(4, 3, 3)),
        case(T(2, 3, 17), T(4, 3, 5), strides=2, padding=(1, 2), dilation=2),
        case(T(1, 4, 9), T(6, 2, 3), groups=2, padding=1),
        case(T(2, 16, 3), T(4, 3, 3), data_layout="NWC"),
        case(T(0, 3, 16), T(4, 3, 3)),
    ],
    rtol=1e-4,
)
entry(
    "nn.conv2d",
    _conv(2),
    [
        case(T(2, 3, 9, 10), T(4, 3, 3, 3)),
        case(T(1, 3, 11, 7), T(5, 3, 3, 2), strides=(2, 1), padding=(1, 0, 2, 1), dilation=(1, 2)),
        case(T(1, 6, 8, 8), T(6, 1, 3, 3), groups=6, padding=1),
        case(T(1, 4, 8, 8), T(8, 2, 1, 1), groups=2),
        case(T(2, 9, 10, 3), T(3, 3, 3, 4), data_layout="NHWC", kernel_layout="HWIO"),
        case(T(2, 3, 9, 9), T(4, 3, 3, 3), out_layout="NHWC"),
        case(T(1, 3, 5, 5), T(4, 3, 5, 5), out_dtype="float64"),
        case(T(0, 3, 9, 9), T(4, 3, 3, 3)),
        case(T(2, 3, 8, 8), T(4, 3, 3, 3), strides=2, padding=1),
    ],
    rtol=1e-4,
)
entry(
    "nn.conv3d",
    _conv(3),
    [
        case(T(1, 2, 5, 6, 7), T(3, 2, 2, 3, 3)),
        case(T(1, 2, 5, 6, 7), T(3, 2, 3, 3, 3), strides=2, padding=1),
        case(T(1, 4, 5, 5, 5), T(4, 2, 1, 1, 1), groups=2),
        case(T(1, 5, 6, 7, 2), T(3, 2, 2, 3, 3), data_layout="NDHWC"),
        case(T(0, 2, 5, 6, 7), T(3, 2, 2, 3, 3)),
    ],
    rtol=1e-4,
)
entry(
    "nn.conv1d_transpose",
    _conv_transpose(1),
    [
        case(T(2, 3, 7), T(3, 4, 3)),
        case(T(2, 4, 7), T(4, 3, 3), strides=2, padding=1, output_padding=1, groups=2),
        case(T(1, 3, 1), T(3, 4, 5)),
        case(T(1, 3, 5), T(3, 4, 3), dilation=2),
        case(T(0, 3, 7), T(3, 4, 3)),
    ],
    rtol=1e-4,
)
entry(
    "nn.conv2d_transpose",
    _conv_transpose(2),
    [
        case(T(1, 3, 5, 6), T(3, 4, 3, 3)),
        case(
            T(1, 4, 5, 6), T(4, 3, 3, 2), strides=(2, 3), padding=1, output_padding=(1, 2), groups=2
        ),
        case(T(1, 3, 1, 1), T(3, 4, 2, 2)),
        case(T(0, 3, 5, 6), T(3, 4, 3, 3)),
    ],
    rtol=1e-4,
)

# ---- pools --------------------------------------------------------------------------------------


def _pool(kind, d, default_include=False):
    pad_value = -np.inf if kind == "max" else 0.0
    canonical = "NC" + "DHW"[-d:]

    def call(
        x,
        pool_size=1,
        strides=1,
        padding=0,
        dilation=1,
        ceil_mode=False,
        count_include_pad=default_include,
        layout=canonical,
        out_layout=None,
    ):
        dtype = x.dtype
        x = np.transpose(x, [layout.index(letter) for letter in canonical]).astype("float64")
        size, stride, dil = (_spread(v, d) for v in (pool_size, strides, dilation))
        begin, end = _pads(padding, d)
        counts = []
        for i in range(d):
            room = x.shape[2 + i] + begin[i] + end[i] - dil[i] * (size[i] - 1) - 1
            count = (-(-room // stride[i]) if ceil_mode else room // stride[i]) + 1
            if ceil_mode and (count - 1) * stride[i] >= x.shape[2 + i] + begin[i]:
                count -= 1
            counts.append(count)
        out = np.empty((*x.shape[:2], *counts))
        for at in np.ndindex(*counts):
            values, inside, padded = [], 0, 0
            for offset in np.ndindex(*size):
                where = [
                    a * s + o * dl - b
                    for a, s, o, dl, b in zip(at, stride, offset, dil, begin, strict=True)
                ]
                # A window that reaches behind the padding has fewer elements.
                padded += all(w < n + e for w, n, e in zip(where, x.shape[2:], end, strict=True))
                if all(0 <= w < n for w, n in zip(where, x.shape[2:], strict=True)):
                    values.append(x[(slice(None), slice(None), *where)])
                    inside += 1
                elif kind == "max":
                    values.append(np.full(x.shape[:2], pad_value))
            if kind == "max":
                result = np.max(values, axis=0)
            else:
                total = np.sum(values, axis=0) if values else np.zeros(x.shape[:2])
                result = total / max(padded if count_include_pad else inside, 1)
            out[(slice(None), slice(None), *at)] = result
        out_layout = out_layout or layout
        return np.transpose(out, [canonical.index(letter) for letter in out_layout]).astype(dtype)

    return call


for _kind, _d, _include in (
    ("max", 1, False),
    ("max", 2, False),
    ("max", 3, False),
    ("avg", 1, True),
    ("avg", 2, False),
    ("avg", 3, True),
):
    _space = (9, 8, 7)[:_d]
    _cases = [
        case(T(2, 3, *_space), pool_size=2, strides=2),
        case(T(1, 2, *_space), pool_size=3, strides=2, padding=1),
        case(T(1, 2, *_space), pool_size=3, strides=2, padding=1, ceil_mode=True),
        case(T(1, 2, *_space), pool_size=2, dilation=2),
        case(T(1, 2, *_space), pool_size=3, padding=1, count_include_pad=True),
        case(T(1, *_space, 2), pool_size=2, layout="N" + "DHW"[-_d:] + "C"),
        case(T(0, 3, *_space), pool_size=2),
        case(T(1, 1, *([1] * _d))),
    ]
    entry(f"nn.{_kind}_pool{_d}d", _pool(_kind, _d, _include), _cases)


def _adaptive(d):
    pool = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)[d - 1]
    canonical = "NC" + "DHW"[-d:]

    def call(x, output_size=None, layout=canonical):
        x = _to(x, layout, canonical)
        size = list(x.shape[2:]) if output_size is None else _spread(output_size, d)
        return _to(pool(x.double(), size), canonical, layout).to(x.dtype)

    return by_torch(call)


for _d in (1, 2, 3):
    _space = (9, 8, 7)[:_d]
    entry(
        f"nn.adaptive_avg_pool{_d}d",
        _adaptive(_d),
        [
            case(T(2, 3, *_space), output_size=4),
            case(T(1, 2, *_space), output_size=1),
            case(T(1, 2, *_space)),
            case(T(1, 2, *_space), output_size=[3, 5, 2][:_d]),
            case(T(1, *_space, 2), output_size=2, layout="N" + "DHW"[-_d:] + "C"),
            case(T(0, 2, *_space), output_size=2),
        ],
    )

# ---- normalisation ------------------------------------------------------------------------------


def _softmax(x, axis=-1):
    wide = x.astype("float64")
    e = np.exp(wide - wide.max(axis, keepdims=True))
    return (e / e.sum(axis, keepdims=True)).astype(x.dtype)


_SOFTMAX = [
    *with_dtypes(["float16", "float32", "float64"], T(3, 5)),
    case(T(2, 3, 4), axis=1),
    case(T(2, 3, 4), axis=-2),
    case(T(1, 17), axis=0),
    case(T(0, 3)),
]
entry("nn.softmax", _softmax, [*_SOFTMAX, case(T(values=[0.0, 1.0, -np.inf]))])
entry(
    "nn.log_softmax",
    lambda x, axis=-1: np.log(_softmax(x.astype("float64"), axis)).astype(x.dtype),
    _SOFTMAX,
)


def _channel(v, x, axis):
    shape = [1] * x.ndim
    shape[axis] = -1
    return v.reshape(shape)


entry(
    "nn.prelu",
    lambda x, alpha, axis=1: np.where(x > 0, x, x * _channel(alpha, x, 0 if x.ndim == 1 else axis)),
    [
        case(T(2, 3, 4), T(3)),
        case(T(2, 3), T(3), axis=-1),
        case(T(2, 3, 4), T(4), axis=2),
        case(T(0, 3), T(3)),
    ],
)


def _batch_norm(
    x,
    gamma,
    beta,
    mean,
    var,
    axis,
    epsilon=1e-5,
    center=True,
    scale=True,
    momentum=0.1,
    training=True,
):
    axes = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    m, v = mean, var
    if training:
        m, v = x.mean(axes, dtype="float64"), x.var(axes, dtype="float64")
    y = (x - _channel(m, x, axis)) / np.sqrt(_channel(v, x, axis) + epsilon)
    if scale:
        y = y * _channel(gamma, x, axis)
    if center:
        y = y + _channel(beta, x, axis)
    if training:
        mean, var = ((1 - momentum) * old + momentum * new for old, new in ((mean, m), (var, v)))
    return y.astype(x.dtype), mean.astype(x.dtype), var.astype(x.dtype)


_C3 = [T(3), T(3), T(3), T(3, low=0.5, high=2)]
entry(
    "nn.batch_norm",
    _batch_norm,
    [
        case(T(2, 3, 4, 5), *_C3, 1, training=False),
        case(T(2, 3, 4, 5), *_C3, 1),
        case(T(2, 4, 3), *_C3, -1, momentum=0.3),
        case(T(2, 3, 4), *_C3, 1, center=False, scale=False, training=False),
        case(T(0, 3, 4), *_C3, 1, training=False),
    ],
    rtol=1e-4,
)


def _normalise(x, axes, epsilon):
    wide = x.astype("float64")
    mean, var = wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)
    return (wide - mean) / np.sqrt(var + epsilon)


def _spread_axes(v, x, axes):
    axes = [a % x.ndim for a in axes]
    shape = [x.shape[i] if i in axes else 1 for i in range(x.ndim)]
    return np.transpose(v, np.argsort(axes).argsort()).reshape(shape)


def _layer_norm(x, gamma, beta, axes, epsilon=1e-5, center=True, scale=True):
    axes = [axes] if isinstance(axes, int) else axes
    y = _normalise(x, tuple(axes), epsilon)
    y = y * _spread_axes(gamma, x, axes) if scale else y
    return (y + _spread_axes(beta, x, axes) if center else y).astype(x.dtype)


entry(
    "nn.layer_norm",
    _layer_norm,
    [
        case(T(2, 3, 8), T(8), T(8), -1),
        case(T(2, 3, 8), T(3, 8), T(3, 8), [1, 2], epsilon=1e-3),
        case(T(2, 3, 8), T(3, 8), T(3, 8), [-2, -1], center=False, scale=False),
        case(T(4, 17, dtype="float64"), T(17, dtype="float64"), T(17, dtype="float64"), [1]),
        case(T(0, 8), T(8), T(8), -1),
    ],
    rtol=1e-4,
)


def _rms_norm(x, weight, axes=-1, epsilon=1e-5):
    axes = [axes] if isinstance(axes, int) else axes
    wide = x.astype("float64")
    y = wide / np.sqrt((wide * wide).mean(tuple(axes), keepdims=True) + epsilon)
    return (y * _spread_axes(weight, x, axes)).astype(x.dtype)


entry(
    "nn.rms_norm",
    _rms_norm,
    [
        case(T(2, 3, 8), T(8)),
        case(T(2, 3, 8), T(3, 8), [1, 2]),
        case(T(0, 8), T(8)),
        case(T(5, 17), T(17), epsilon=0.1),
    ],
    rtol=1e-4,
)


def _group_norm(
    x, gamma, beta, num_groups, channel_axis, axes, epsilon=1e-5, center=True, scale=True
):
    x64 = np.moveaxis(x.astype("float64"), channel_axis, 0)
    axes = [a % x.ndim for a in axes]
    moved = [1 + (a if a > channel_axis % x.ndim else a + 1) for a in axes]
    grouped = x64.reshape(num_groups, x64.shape[0] // num_groups, *x64.shape[1:])
    grouped = _normalise(grouped, (1, *moved), epsilon)
    y = np.moveaxis(grouped.reshape(x64.shape), 0, channel_axis)
    y = y * _channel(gamma, x, channel_axis) if scale else y
    return (y + _channel(beta, x, channel_axis) if center else y).astype(x.dtype)


entry(
    "nn.group_norm",
    _group_norm,
    [
        case(T(2, 6, 4, 5), T(6), T(6), 3, 1, [2, 3]),
        case(T(2, 4, 6), T(6), T(6), 2, -1, [1]),
        case(T(2, 4, 5), T(4), T(4), 1, 1, [2], center=False, scale=False),
        case(T(0, 4, 5), T(4), T(4), 2, 1, [2]),
    ],
    rtol=1e-4,
)


def _instance_norm(x, gamma, beta, channel_axis, axes, epsilon=1e-5, center=True, scale=True):
    y = _normalise(x, tuple(axes), epsilon)
    y = y * _channel(gamma, x, channel_axis) if scale else y
    return (y + _channel(beta, x, channel_axis) if center else y).astype(x.dtype)


entry(
    "nn.instance_norm",
    _instance_norm,
    [
        case(T(2, 3, 4, 5), T(3), T(3), 1, [2, 3]),
        case(T(2, 8, 3), T(3), T(3), -1, [1]),
        case(T(0, 3, 4), T(3), T(3), 1, [2]),
    ],
    rtol=1e-4,
)
entry(
    "nn.dropout",
    lambda x, rate=0.5: (x, x),
    [case(T(2, 3)), case(T(0, 3), rate=0.1), case(T())],
)

# ---- losses, padding ----------------------------------------------------------------------------


def _cross_entropy(predictions, labels):
    total = -(predictions.astype("float64") * labels).sum()
    return predictions.dtype.type(total if predictions.ndim == 1 else total / predictions.shape[0])


entry(
    "nn.cross_entropy_with_logits",
    _cross_entropy,
    [case(T(*shape), T(*shape)) for shape in ((3,), (5, 3), (2, 3, 4), (2, 0))],
)


def _nll_loss(predictions, targets, weights=None, reduction="mean", ignore_index=-100):
    return F.nll_loss(
        predictions, targets.long(), weights, ignore_index=ignore_index, reduction=reduction
    )


def _classes(*shape, high):
    return T(*shape, dtype="int64", low=0, high=high)


entry(
    "nn.nll_loss",
    by_torch(_nll_loss),
    [
        case(T(4, 5), _classes(4, high=5)),
        case(T(4, 5), _classes(4, high=5), T(5, low=0.5, high=1), reduction="sum"),
        case(T(2, 5, 3, 4), _classes(2, 3, 4, high=5), reduction="none"),
        case(T(2, 5, 3), _classes(2, 3, high=5), T(5, low=0.5, high=1), ignore_index=2),
        case(T(5), _classes(high=5)),
        case(T(0, 5), _classes(0, high=5), reduction="sum"),
    ],
)
_MODES = {"reflect": "reflect", "replicate": "edge", "edge": "edge", "circular": "wrap"}


def _pad(x, pad_width, pad_mode="constant", pad_value=0.0):
    pairs = list(zip(pad_width[::2], pad_width[1::2], strict=True))
    if not pairs:
        return x
    if pad_mode != "constant":
        return np.pad(x, pairs, _MODES[pad_mode])
    return np.pad(x, pairs, constant_values=pad_value)


entry(
    "nn.pad",
    _pad,
    [
        case(T(2, 3), [1, 1, 2, 0]),
        case(T(2, 3), [0, 0, 1, 2], pad_value=7.0),
        *[case(T(4, 5), [0, 0, 2, 1], m) for m in _MODES],
        case(T(0, 3), [1, 0, 0, 0]),
        case(T(), []),
    ],
)
entry(
    "nn.pixel_shuffle",
    by_torch(F.pixel_shuffle),
    [case(T(1, 8, 3, 5), 2), case(T(9, 2, 2), 3), case(T(2, 3, 4, 4), 1), case(T(0, 4, 3, 3), 2)],
)

# ---- gradients ----------------------------------------------------------------------------------
for _name in ("no_grad", "start_checkpoint", "end_checkpoint"):
    entry(f"grad.{_name}", lambda x: x, [case(T(2, 3)), case(T(0)), case(T(dtype="int32"))])


def _nll_backward(grad, predictions, targets, weights=None, **attrs):
    predictions.requires_grad_(True)
    _nll_loss(predictions, targets, weights, **attrs).backward(grad)
    return predictions.grad


entry(
    "grad.nll_loss_backward",
    by_torch(_nll_backward),
    [
        case(T(), T(4, 5), _classes(4, high=5)),
        case(T(4), T(4, 5), _classes(4, high=5), T(5, low=0.5, high=1), reduction="none"),
        case(T(), T(2, 5, 3), _classes(2, 3, high=5), reduction="sum"),
        case(T(0), T(0, 5), _classes(0, high=5), reduction="none"),
    ],
)


def _pool_backward(kind):
    def call(
        grad, x, pool_size=(1, 1), strides=(1, 1), padding=(0, 0, 0, 0), count_include_pad=False
    ):
        x = x.double().requires_grad_(True)
        if kind == "max":
            y = F.max_pool2d(x, pool_size, strides, padding[:2])
        else:
            y = F.avg_pool2d(x, pool_size, strides, padding[:2], False, count_include_pad)
        y.backward(grad.double())
        return x.grad.to(grad.dtype)

    return by_torch(call)


for _kind in ("max", "avg"):
    entry(
        f"grad.{_kind}_pool2d_backward",
        _pool_backward(_kind),
        [
            case(T(1, 2, 3, 3), T(1, 2, 6, 6), pool_size=(2, 2), strides=(2, 2)),
            case(
                T(1, 2, 4, 4), T(1, 2, 8, 8), pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1)
            ),
            case(T(1, 1, 1, 1), T(1, 1, 1, 1)),
            case(T(0, 2, 3, 3), T(0, 2, 6, 6), pool_size=(2, 2), strides=(2, 2)),
        ],
    )


def _take_backward(grad, x, indices, axis=None):
    out = np.zeros_like(x)
    axis = 0 if axis is None else axis
    moved = np.moveaxis(out, axis, 0)
    flat = np.moveaxis(grad, range(axis, axis + indices.ndim), range(indices.ndim))
    np.add.at(moved, indices, flat)
    return out


entry(
    "grad.take_backward",
    _take_backward,
    [
        case(T(2, 3), T(5, 3), T(values=[4, 4], dtype="int64"), axis=0),
        case(T(4, 2), T(4, 6), T(values=[1, 5], dtype="int64"), axis=1),
        case(T(3), T(7), T(values=[0, 0, 6], dtype="int64")),
        case(T(0, 3), T(5, 3), T(0, dtype="int64"), axis=0),
    ],
)

# ---- attention ----------------------------------------------------------------------------------


def _attention(q, k, v, bias=None, scale=None, causal_mask=None, window_size=None):
    dtype = q.dtype
    q, k, v = (t.double().permute(0, 2, 1, 3) for t in (q, k, v))
    repeat = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    scores = q @ k.transpose(-1, -2) * (scale if scale is not None else q.shape[-1] ** -0.5)
    if bias is not None:
        scores = scores + bias
    rows, columns = scores.shape[-2:]
    shift = columns - rows if causal_mask == "BottomRight" else 0
    if causal_mask:
        allowed = torch.ones(rows, columns).tril(shift).bool()
        if window_size:
            allowed &= torch.ones(rows, columns).triu(shift - window_size + 1).bool()
        scores = scores.masked_fill(~allowed, -torch.inf)
    return (scores.softmax(-1) @ v).permute(0, 2, 1, 3).to(dtype)


_QKV = [T(2, 4, 3, 8), T(2, 5, 3, 8), T(2, 5, 3, 6)]
entry(
    "nn.attention",
    by_torch(_attention),
    [
        case(*_QKV),
        case(*_QKV, scale=0.3),
        case(*_QKV, causal_mask="TopLeft"),
        case(*_QKV, causal_mask="BottomRight"),
        case(T(1, 4, 6, 8), T(1, 4, 2, 8), T(1, 4, 2, 8)),
        case(T(1, 1, 1, 8), T(1, 7, 1, 8), T(1, 7, 1, 8)),
        case(T(0, 4, 3, 8), T(0, 5, 3, 8), T(0, 5, 3, 8)),
    ],
    rtol=1e-4,
)
entry(
    "nn.attention_bias",
    by_torch(_attention),
    [
        case(*_QKV, T(2, 3, 4, 5)),
        case(*_QKV, T(1, 1, 4, 5)),
        case(*_QKV, T(2, 1, 1, 5), causal_mask="TopLeft"),
        case(T(0, 4, 3, 8), T(0, 5, 3, 8), T(0, 5, 3, 8), T(1, 3, 4, 5)),
    ],
    rtol=1e-4,
)


def _attention_var_len(q, k, v, start_q, _max_q, start_k=None, _max_k=None, **attrs):
    start_k = start_q if start_k is None else start_k
    parts = []
    for i in range(len(start_q) - 1):
        rows = slice(int(start_q[i]), int(start_q[i + 1]))
        columns = slice(int(start_k[i]), int(start_k[i + 1]))
        parts.append(_attention(q[:, rows], k[:, columns], v[:, columns], **attrs))
    return torch.cat(parts, 1)


_START, _LONGEST = T(values=[0, 3, 7], dtype="int32"), T(values=4, dtype="int32")
entry(
    "nn.attention_var_len",
    by_torch(_attention_var_len),
    [
        case(T(1, 7, 3, 8), T(1, 7, 3, 8), T(1, 7, 3, 8), _START, _LONGEST),
        case(T(1, 7, 3, 8), T(1, 7, 3, 8), T(1, 7, 3, 8), _START, _LONGEST, causal_mask="TopLeft"),
        case(
            T(1, 7, 3, 8),
            T(1, 9, 3, 8),
            T(1, 9, 3, 8),
            _START,
            _LONGEST,
            T(values=[0, 4, 9], dtype="int32"),
            T(values=5, dtype="int32"),
            scale=0.2,
        ),
        case(*[T(1, 0, 3, 8)] * 3, T(values=[0, 0], dtype="int32"), T(values=0, dtype="int32")),
    ],
    rtol=1e-4,
)
