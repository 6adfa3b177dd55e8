# SPDX-License-Identifier: Apache-2.0
"""Pools and their gradients, adaptive pools, resizing."""

import itertools

import numpy as np

__all__ = [
    "adaptive_pool",
    "pool_grad_nchw",
    "poolnd_python",
    "resize1d_python",
    "resize2d_python",
    "resize3d_python",
]


def _channels_first(data, layout):
    """The array with channels first, and how to move them back."""
    if layout is None or layout[1] == "C":
        return data, lambda x: x
    return np.moveaxis(data, -1, 1), lambda x: np.moveaxis(x, 1, -1)


def _count(size, kernel, stride, dilation, before, after, ceil_mode):
    room = size + before + after - (kernel - 1) * dilation - 1
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + before:
        count -= 1  # no window begins behind the data
    return count


def _counts(shape, kernel, strides, dilation, before, after, ceil_mode):
    sizes = zip(shape, kernel, strides, dilation, before, after, strict=True)
    return [_count(*size, ceil_mode) for size in sizes]


def _windows(shape, kernel, strides, dilation, before, after, ceil_mode):
    """(place of the result, elements of the data, elements of data and padding) of each window."""
    counts = _counts(shape, kernel, strides, dilation, before, after, ceil_mode)
    for place in itertools.product(*map(range, counts)):
        taps = [
            [o * s + t * d - b for t in range(k)]
            for o, k, s, d, b in zip(place, kernel, strides, dilation, before, strict=True)
        ]
        inside = [[i for i in t if 0 <= i < n] for t, n in zip(taps, shape, strict=True)]
        padded = [sum(i < n + a for i in t) for t, n, a in zip(taps, shape, after, strict=True)]
        yield place, np.ix_(*inside), int(np.prod(padded))


def poolnd_python(
    np_data,
    kernel,
    strides,
    dilation,
    padding_before,
    padding_after,
    pool_type,
    count_include_pad=True,
    ceil_mode=False,
    dtype="float32",
    layout=None,
):
    """The maximum or mean of each window."""
    data, back = _channels_first(np_data, layout)
    geometry = data.shape[2:], kernel, strides, dilation, padding_before, padding_after, ceil_mode
    result = np.zeros((*data.shape[:2], *_counts(*geometry)), dtype)
    for place, inside, padded in _windows(*geometry):
        values = data[(slice(None), slice(None), *inside)].reshape(*data.shape[:2], -1)
        count = padded if count_include_pad else values.shape[-1]
        reduced = values.max(-1) if pool_type == "max" else values.sum(-1) / max(count, 1)
        result[(slice(None), slice(None), *place)] = reduced
    return back(result)


def pool_grad_nchw(
    a_np, out_grad_np, pool_size, strides, padding, pool_type, ceil_mode, count_include_pad=True
):
    """The gradient of a pool of (N, C, H, W); padding is (top, left, bottom, right)."""
    result = np.zeros(a_np.shape, a_np.dtype)
    geometry = a_np.shape[2:], pool_size, strides, (1, 1), padding[:2], padding[2:], ceil_mode
    for place, inside, padded in _windows(*geometry):
        for n, c in np.ndindex(*a_np.shape[:2]):
            grad, values = out_grad_np[(n, c, *place)], a_np[n, c][inside]
            part = result[n, c]
            if pool_type == "max":
                at = np.unravel_index(values.argmax(), values.shape)
                part[tuple(axis.ravel()[i] for axis, i in zip(inside, at, strict=True))] += grad
            else:
                part[inside] += grad / max(padded if count_include_pad else values.size, 1)
    return result


def adaptive_pool(np_data, out_size, pool_type, layout):
    """The maximum or mean of parts of equal share."""
    data, back = _channels_first(np_data, layout)
    sizes = data.shape[2:]
    out_size = [out_size] * len(sizes) if np.isscalar(out_size) else list(out_size)
    result = np.zeros((*data.shape[:2], *out_size), data.dtype)
    for place in np.ndindex(*out_size):
        part = [
            slice(o * n // m, -(-(o + 1) * n // m))
            for o, n, m in zip(place, sizes, out_size, strict=True)
        ]
        values = data[(slice(None), slice(None), *part)].reshape(*data.shape[:2], -1)
        reduced = values.max(-1) if pool_type == "max" else values.mean(-1)
        result[(slice(None), slice(None), *place)] = reduced
    return back(result)


# ---- resizing ---------------------------------------------------------------------------------
def _source(place, size, target, mode):
    if mode == "half_pixel":
        return (place + 0.5) * size / target - 0.5
    if mode == "align_corners":
        return place * (size - 1) / max(target - 1, 1)
    if mode == "asymmetric":
        return place * size / target
    raise ValueError(f"resize: expected another coordinate_transformation_mode, got {mode!r}")


def _weights(size, target, method, mode):
    """The matrix that resizes one axis."""
    matrix = np.zeros((target, size))
    for place in range(target):
        at = _source(place, size, target, mode)
        if method == "nearest_neighbor":
            nearest = np.floor(at + 0.5) if mode == "align_corners" else np.floor(at + 1e-5)
            taps = [(int(nearest), 1.0)]
        elif method == "linear":
            first = int(np.floor(at))
            taps = [(first, 1 - (at - first)), (first + 1, at - first)]
        else:
            first, a = int(np.floor(at)), -0.75
            t = at - first
            near = lambda x, a=a: (a + 2) * x**3 - (a + 3) * x**2 + 1
            far = lambda x, a=a: a * (x**3 - 5 * x**2 + 8 * x - 4)
            taps = [(first - 1, far(t + 1)), (first, near(t)), (first + 1, near(1 - t))]
            taps.append((first + 2, far(2 - t)))
        for tap, weight in taps:
            matrix[place, min(max(tap, 0), size - 1)] += weight
    return matrix


def _resized(data, scale, layout, method, mode):
    data, back = _channels_first(data, layout)
    result = data.astype("float64")
    for axis, factor in enumerate(scale, 2):
        size = data.shape[axis]
        matrix = _weights(size, round(size * factor), method, mode)
        result = np.moveaxis(np.tensordot(result, matrix, (axis, 1)), -1, axis)
    return back(result.astype(data.dtype))


def _resize(default_layout):
    def resize(
        data,
        scale,
        layout=default_layout,
        method="nearest_neighbor",
        coordinate_transformation_mode="align_corners",
    ):
        """The array with its spatial axes longer by these factors."""
        return _resized(data, scale, layout, method, coordinate_transformation_mode)

    return resize


resize1d_python, resize2d_python, resize3d_python = map(_resize, ("NCW", "NCHW", "NCDHW"))
