# SPDX-License-Identifier: Apache-2.0
"""Convolutions of any number of dimensions, plain and transposed."""

import numpy as np

from ..nn.utils import get_pad_tuple_generic

__all__ = [
    "conv1d_ncw_python",
    "conv1d_transpose_ncw_python",
    "conv2d_backward_weight_nchw_python",
    "conv2d_backward_weight_python",
    "conv2d_hwcn_python",
    "conv2d_nchw_python",
    "conv2d_nhwc_python",
    "conv2d_transpose_nchw_python",
    "conv2d_transpose_nhwc_python",
    "conv3d_ncdhw_python",
    "conv3d_ndhwc_python",
    "conv3d_transpose_ncdhw_python",
    "depthwise_conv2d_python_nchw",
    "depthwise_conv2d_python_nchwc",
    "depthwise_conv2d_python_nhwc",
    "dilate_python",
    "group_conv1d_ncw_python",
    "group_conv1d_transpose_ncw_python",
]


def _per_axis(value, count):
    return [value] * count if np.isscalar(value) else list(value)


def dilate_python(input_np, strides, dilation_value=0.0, out_dtype=None):
    """The array with a value between its elements."""
    shape = [(n - 1) * s + 1 if n else 0 for n, s in zip(input_np.shape, strides, strict=True)]
    result = np.full(shape, dilation_value, out_dtype or input_np.dtype)
    result[tuple(slice(None, None, s) for s in strides)] = input_np
    return result


def _convolved(data, kernel, stride, padding, dilation=1, groups=1):
    """Channels first: data (N, C, ...), kernel (O, C / groups, ...)."""
    dims = data.ndim - 2
    stride, dilation = _per_axis(stride, dims), _per_axis(dilation, dims)
    kernel = dilate_python(kernel, [1, 1, *dilation])
    pads = get_pad_tuple_generic(padding, kernel.shape[2:])
    sides = [(0, 0), (0, 0), *zip(pads[:dims], pads[dims:], strict=True)]
    padded = np.pad(data, sides)
    spatial = tuple(range(2, dims + 2))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape[2:], spatial)
    windows = windows[(..., *(slice(None, None, s) for s in stride), *([slice(None)] * dims))]
    parts = zip(np.split(windows, groups, 1), np.split(kernel, groups, 0), strict=True)
    last = tuple(range(-dims, 0))
    axes = (1, *last), (1, *spatial)
    return np.concatenate([np.moveaxis(np.tensordot(x, w, axes), -1, 1) for x, w in parts], 1)


def _transposed(data, kernel, stride, padding, output_padding, groups=1):
    """Channels first: data (N, C, ...), kernel (C, O / groups, ...)."""
    dims = data.ndim - 2
    stride, more = _per_axis(stride, dims), _per_axis(output_padding, dims)
    sizes = kernel.shape[2:]
    pads = get_pad_tuple_generic(padding, sizes)
    spread = dilate_python(data, [1, 1, *stride])
    sides = [
        (k - 1 - before, k - 1 - after + extra)
        for k, before, after, extra in zip(sizes, pads[:dims], pads[dims:], more, strict=True)
    ]
    spread = np.pad(spread, [(0, 0), (0, 0), *((max(b, 0), max(a, 0)) for b, a in sides)])
    cut = [
        slice(max(-b, 0), n - max(-a, 0)) for (b, a), n in zip(sides, spread.shape[2:], strict=True)
    ]
    spread = spread[(slice(None), slice(None), *cut)]
    turned = np.flip(kernel, tuple(range(2, dims + 2)))
    parts = zip(np.split(spread, groups, 1), np.split(turned, groups, 0), strict=True)
    return np.concatenate([_convolved(x, w.swapaxes(0, 1), 1, 0) for x, w in parts], 1)


def group_conv1d_ncw_python(a_np, w_np, stride, padding, dilation, groups):
    """A convolution of (N, C, W) by (O, I, W)."""
    return _convolved(a_np, w_np, stride, padding, dilation, groups)


def conv1d_ncw_python(a_np, w_np, stride, padding, dilation):
    """A convolution of (N, C, W) by (O, I, W)."""
    return _convolved(a_np, w_np, stride, padding, dilation)


def conv2d_nchw_python(a_np, w_np, stride, padding, groups=1):
    """A convolution of (N, C, H, W) by (O, I, H, W)."""
    return _convolved(a_np, w_np, stride, padding, 1, groups)


def conv3d_ncdhw_python(a_np, w_np, stride, padding, groups=1):
    """A convolution of (N, C, D, H, W) by (O, I, D, H, W)."""
    return _convolved(a_np, w_np, stride, padding, 1, groups)


def conv2d_nhwc_python(a_np, w_np, stride, padding, groups=1):
    """A convolution of (N, H, W, C) by (H, W, I, O)."""
    data, kernel = a_np.transpose(0, 3, 1, 2), w_np.transpose(3, 2, 0, 1)
    return _convolved(data, kernel, stride, padding, 1, groups).transpose(0, 2, 3, 1)


def conv2d_hwcn_python(a_np, w_np, stride, padding):
    """A convolution of (H, W, C, N) by (H, W, I, O)."""
    data, kernel = a_np.transpose(3, 2, 0, 1), w_np.transpose(3, 2, 0, 1)
    return _convolved(data, kernel, stride, padding).transpose(2, 3, 1, 0)


def conv3d_ndhwc_python(a_np, w_np, stride, padding, groups=1):
    """A convolution of (N, D, H, W, C) by (D, H, W, I, O)."""
    data, kernel = np.moveaxis(a_np, -1, 1), w_np.transpose(4, 3, 0, 1, 2)
    return np.moveaxis(_convolved(data, kernel, stride, padding, 1, groups), 1, -1)


def depthwise_conv2d_python_nchw(input_np, filter_np, stride, padding):
    """A convolution of each channel of (N, C, H, W) by (C, M, H, W)."""
    kernel = filter_np.reshape(-1, 1, *filter_np.shape[2:])
    return _convolved(input_np, kernel, stride, padding, 1, input_np.shape[1])


def depthwise_conv2d_python_nhwc(input_np, filter_np, stride, padding):
    """A convolution of each channel of (N, H, W, C) by (H, W, C, M)."""
    data, kernel = input_np.transpose(0, 3, 1, 2), filter_np.transpose(2, 3, 0, 1)
    return depthwise_conv2d_python_nchw(data, kernel, stride, padding).transpose(0, 2, 3, 1)


def depthwise_conv2d_python_nchwc(input_np, filter_np, stride, padding):
    """The same of (N, C, H, W, c) by (O, 1, H, W, 1, o), whose blocks the result has."""
    n, chunks, h, w, block = input_np.shape
    data = np.moveaxis(input_np, -1, 2).reshape(n, chunks * block, h, w)
    kernel = np.moveaxis(filter_np[:, 0, :, :, 0], -1, 1)
    kernel = kernel.reshape(data.shape[1], -1, *kernel.shape[2:])
    result = depthwise_conv2d_python_nchw(data, kernel, stride, padding)
    split = result.reshape(n, -1, filter_np.shape[-1], *result.shape[2:])
    return np.moveaxis(split, 2, -1)


def conv2d_backward_weight_nchw_python(
    dy_np, x_np, kernel_size, stride, padding, groups=1, channels=None
):
    """The gradient of the kernel (O, I, H, W), given that of the result."""
    if channels not in (None, dy_np.shape[1]):
        raise ValueError(f"channels: expected {dy_np.shape[1]}, got {channels}")
    pads = get_pad_tuple_generic(padding, kernel_size)
    padded = np.pad(x_np, [(0, 0), (0, 0), *zip(pads[:2], pads[2:], strict=True)])
    strides, sizes = _per_axis(stride, 2), dy_np.shape[2:]
    result = np.empty((dy_np.shape[1], x_np.shape[1] // groups, *kernel_size), dy_np.dtype)
    for place in np.ndindex(*kernel_size):
        seen = (
            slice(k, k + (n - 1) * s + 1, s) for k, n, s in zip(place, sizes, strides, strict=True)
        )
        x = padded[(slice(None), slice(None), *seen)]
        parts = zip(np.split(dy_np, groups, 1), np.split(x, groups, 1), strict=True)
        products = [np.einsum("nohw,nihw->oi", g, part) for g, part in parts]
        result[(slice(None), slice(None), *place)] = np.concatenate(products)
    return result


def conv2d_backward_weight_python(
    dy_np, x_np, kernel_size, stride, padding, layout="NCHW", groups=1, channels=None
):
    """The same in a layout: NHWC gives (O, H, W, I)."""
    if layout == "NHWC":
        dy_np, x_np = dy_np.transpose(0, 3, 1, 2), x_np.transpose(0, 3, 1, 2)
    elif layout != "NCHW":
        raise ValueError(f"layout: expected NCHW or NHWC, got {layout}")
    options = kernel_size, stride, padding, groups, channels
    result = conv2d_backward_weight_nchw_python(dy_np, x_np, *options)
    return result if layout == "NCHW" else result.transpose(0, 2, 3, 1)


def group_conv1d_transpose_ncw_python(a_np, w_np, stride, padding, output_padding, groups=1):
    """A transposed convolution of (N, C, W) by (C, O / groups, W)."""
    return _transposed(a_np, w_np, stride, padding, output_padding, groups)


def conv1d_transpose_ncw_python(a_np, w_np, stride, padding, output_padding):
    """A transposed convolution of (N, C, W) by (C, O, W)."""
    return _transposed(a_np, w_np, stride, padding, output_padding)


def conv2d_transpose_nchw_python(a_np, w_np, stride, padding, output_padding, groups=1):
    """A transposed convolution of (N, C, H, W) by (C, O / groups, H, W)."""
    return _transposed(a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nhwc_python(
    a_nhwc, weight, weight_format, stride, padding, output_padding=(0, 0)
):
    """A transposed convolution of (N, H, W, C) by a kernel whose axes are named."""
    kernel = weight.transpose([weight_format.index(axis) for axis in "IOHW"])
    result = _transposed(a_nhwc.transpose(0, 3, 1, 2), kernel, stride, padding, output_padding)
    return result.transpose(0, 2, 3, 1)


def conv3d_transpose_ncdhw_python(a_np, w_np, stride, padding, output_padding, groups=1):
    """A transposed convolution of (N, C, D, H, W) by (C, O / groups, D, H, W)."""
    return _transposed(a_np, w_np, stride, padding, output_padding, groups)
