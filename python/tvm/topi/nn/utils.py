# SPDX-License-Identifier: Apache-2.0
"""Padding of convolutions and pools: what users write as numbers for each side."""

from ..utils import get_const_tuple, simplify


def get_pad_tuple_generic(padding, kernel):
    """(before, after) per spatial axis: before of all axes, then after of all axes.

    `padding` is one number, one per axis, two per axis, "VALID" or "SAME".
    """
    count = len(kernel)
    if isinstance(padding, str):
        if padding not in ("VALID", "SAME"):
            raise ValueError(f"padding: expected 'VALID' or 'SAME', got {padding!r}")
        total = [0 if padding == "VALID" else k - 1 for k in kernel]
        before = [(t + 1) // 2 for t in total]
        return *before, *(t - b for t, b in zip(total, before, strict=True))
    padding = [padding] if isinstance(padding, int) else list(padding)
    if len(padding) == 1:
        padding *= count
    if len(padding) == count:
        padding *= 2
    if len(padding) != 2 * count:
        raise ValueError(f"padding: expected 1, {count} or {2 * count} numbers, got {len(padding)}")
    return tuple(padding)


get_pad_tuple = get_pad_tuple1d = get_pad_tuple3d = get_pad_tuple_generic


def get_padded_shape(data, pad_before, pad_after=None):
    """The shape of a tensor with so many elements before and after along each axis."""
    pad_after = pad_before if pad_after is None else pad_after
    if not len(data.shape) == len(pad_before) == len(pad_after):
        raise ValueError(
            f"padding: expected {len(data.shape)} numbers before and after, got "
            f"{len(pad_before)} and {len(pad_after)}"
        )
    sizes = zip(data.shape, pad_before, pad_after, strict=True)
    return tuple(simplify(size + before + after) for size, before, after in sizes)


def _along(before, after, axes):
    before, after = get_const_tuple(before.shape), get_const_tuple(after.shape)
    return [(after[a] - before[a]) // 2 for a in axes]


def infer_pad(data, data_pad):
    """The padding (h, w) that made `data_pad` of `data`, both NCHW."""
    return tuple(_along(data, data_pad, (2, 3))) if data_pad is not None else (0, 0)


def infer_pad3d(data, data_pad, layout):
    """The padding (d, h, w) that made `data_pad` of `data`."""
    axes = [layout.index(axis) for axis in "DHW"]
    return tuple(_along(data, data_pad, axes)) if data_pad is not None else (0, 0, 0)


def infer_stride(data, kernel, out):
    """The strides (h, w) of a convolution of padded data, all NCHW and OIHW."""
    data, kernel, out = (get_const_tuple(t.shape) for t in (data, kernel, out))
    return tuple((data[a] - kernel[a]) // max(out[a] - 1, 1) for a in (2, 3))
