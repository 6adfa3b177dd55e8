# SPDX-License-Identifier: Apache-2.0
"""Indexing, slicing, elements between channels, batch and space."""

import numpy as np

__all__ = [
    "batch_to_space_nd_python",
    "depth_to_space_python",
    "gather_nd_python",
    "gather_python",
    "matrix_set_diag",
    "one_hot",
    "searchsorted_ref",
    "sequence_mask",
    "slice_axis_python",
    "space_to_batch_nd_python",
    "space_to_depth_python",
    "strided_set_python",
    "strided_slice_python",
]


def gather_python(data, axis, indices):
    """Along an axis the elements at indices."""
    return np.take_along_axis(data, indices, axis)


def gather_nd_python(a_np, indices_np):
    """The elements at indices, whose first axis goes over the axes of the array."""
    return a_np[tuple(indices_np)]


def _slices(begin, end, strides, slice_mode, shape):
    slices = []
    for i, size in enumerate(shape):
        first = begin[i] if i < len(begin) else None
        last = end[i] if i < len(end) else None
        step = strides[i] if strides is not None and i < len(strides) else 1
        if slice_mode == "size":
            last, step = (size if last is None or last < 0 else first + last), 1
        # A negative end of a range that runs backwards, beyond the first element.
        if step < 0 and last is not None and last < -size:
            last = None
        slices.append(slice(first, last, step))
    return tuple(slices)


def strided_slice_python(data, begin, end, strides, slice_mode="end", axes=None):
    """A range with steps along axes."""
    if axes is None:
        return data[_slices(begin, end, strides, slice_mode, data.shape)]
    parts = _slices(begin, end, strides, slice_mode, [data.shape[a] for a in axes])
    slices = [slice(None)] * data.ndim
    for axis, part in zip(axes, parts, strict=True):
        slices[axis] = part
    return data[tuple(slices)]


def strided_set_python(data, v, begin, end, strides):
    """The array with other values in a range."""
    result = data.copy()
    result[_slices(begin, end, strides, "end", data.shape)] = v
    return result


def slice_axis_python(data, axis, begin, end=None):
    """A range of one axis."""
    return data[(slice(None),) * (axis % data.ndim) + (slice(begin, end),)]


def one_hot(indices, on_value, off_value, depth, axis, dtype):
    """A new axis with on_value at each index."""
    hot = indices[..., None] == np.arange(depth)
    return np.moveaxis(np.where(hot, on_value, off_value), -1, axis).astype(dtype)


def sequence_mask(data, valid_length, mask_value, axis):
    """Elements from a length on replaced."""
    place = np.arange(data.shape[axis])
    kept = place[:, None] < valid_length if axis == 0 else place < valid_length[:, None]
    return np.where(kept.reshape(*kept.shape, *[1] * (data.ndim - 2)), data, mask_value)


def searchsorted_ref(sorted_sequence, values, right, out_dtype):
    """Where values belong in sorted rows."""
    side = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, side).astype(out_dtype)
    rows = sorted_sequence.reshape(-1, sorted_sequence.shape[-1])
    wanted = values.reshape(-1, values.shape[-1])
    found = [np.searchsorted(r, v, side) for r, v in zip(rows, wanted, strict=True)]
    return np.stack(found).reshape(values.shape).astype(out_dtype)


def matrix_set_diag(input_np, diagonal, k=0, align="RIGHT_LEFT"):
    """The array with other diagonals."""
    result = input_np.copy()
    low, high = (k, k) if np.isscalar(k) else (k[0], k[-1])
    rows, columns = input_np.shape[-2:]
    above, below = align.split("_")
    for which in range(low, high + 1):
        length = min(rows + min(which, 0), columns - max(which, 0))
        right = (above if which >= 0 else below) == "RIGHT"
        line = diagonal if low == high else diagonal[..., high - which, :]
        start = line.shape[-1] - length if right and low != high else 0
        i = np.arange(length)
        result[..., i + max(-which, 0), i + max(which, 0)] = line[..., start : start + length]
    return result


def depth_to_space_python(data, block_size, mode="DCR"):
    """Blocks of channels of (N, C, H, W) as squares of pixels."""
    n, c, h, w = data.shape
    b, rest = block_size, c // block_size**2
    if mode == "DCR":
        split = data.reshape(n, b, b, rest, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        split = data.reshape(n, rest, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return split.reshape(n, rest, h * b, w * b)


def space_to_depth_python(data, block_size):
    """Squares of pixels of (N, C, H, W) as blocks of channels."""
    n, c, h, w = data.shape
    b = block_size
    split = data.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return split.reshape(n, c * b * b, h // b, w // b)


def space_to_batch_nd_python(data, block_shape, pad_before, pad_after, pad_value=0):
    """Blocks of space as batches."""
    count, rest = len(block_shape), data.shape[len(block_shape) + 1 :]
    pads = [(0, 0), *zip(pad_before, pad_after, strict=True), *[(0, 0)] * len(rest)]
    padded = np.pad(data, pads, constant_values=pad_value)
    sizes = [n // b for n, b in zip(padded.shape[1:], block_shape, strict=False)]
    split = [x for pair in zip(sizes, block_shape, strict=True) for x in pair]
    order = [2 * k + 2 for k in range(count)] + [0] + [2 * k + 1 for k in range(count)]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    return padded.reshape(-1, *split, *rest).transpose(order).reshape(-1, *sizes, *rest)


def batch_to_space_nd_python(data, block_shape, crop_begin_list, crop_end_list):
    """Batches as blocks of space."""
    count, batch = len(block_shape), data.shape[0] // int(np.prod(block_shape))
    split = data.reshape(*block_shape, batch, *data.shape[1:])
    order = [count] + [x for k in range(count) for x in (count + 1 + k, k)]
    order += range(2 * count + 1, split.ndim)
    sizes = [n * b for n, b in zip(data.shape[1:], block_shape, strict=False)]
    whole = split.transpose(order).reshape(batch, *sizes, *data.shape[count + 1 :])
    crops = zip(crop_begin_list, crop_end_list, sizes, strict=True)
    return whole[(slice(None), *(slice(b, n - e) for b, e, n in crops))]
