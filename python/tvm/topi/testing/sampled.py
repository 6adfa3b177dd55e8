# SPDX-License-Identifier: Apache-2.0
"""Values between pixels: grids, crops, regions, deformed convolutions."""

import itertools

import numpy as np

from ..nn.utils import get_pad_tuple_generic

__all__ = [
    "affine_grid_python",
    "correlation_nchw_python",
    "crop_and_resize_python",
    "deformable_conv2d_nchw_python",
    "deformable_conv2d_nhwc_python",
    "grid_sample_python",
    "roi_align_nchw_python",
    "roi_align_nhwc_python",
    "roi_pool_nchw_python",
]


def _cubic(distance, a=-0.75):
    d = abs(distance)
    near, far = (a + 2) * d**3 - (a + 3) * d**2 + 1, a * (d**3 - 5 * d**2 + 8 * d - 4)
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


# {method: (the taps beside the pixel below, the weight of a tap by its distance)}
_METHODS = {
    "nearest": ((0, 1), lambda d: (abs(d) <= 0.5).astype(float)),
    "bilinear": ((0, 1), lambda d: 1 - abs(d)),
    "bicubic": ((-1, 0, 1, 2), _cubic),
}


def _sampled(image, places, method="bilinear", bring=None):
    """Values of (C, ...) at places, an array per axis; pixels outside are 0, or what `bring`
    (index, size) puts in their place."""
    if method == "nearest":
        places = [np.rint(p) for p in places]
    taps, weight_of = _METHODS[method]
    total = np.zeros((len(image), *places[0].shape))
    for steps in itertools.product(taps, repeat=len(places)):
        weight, at = 1.0, []
        for place, step, size in zip(places, steps, image.shape[1:], strict=True):
            tap = np.floor(place) + step
            weight = weight * weight_of(place - tap)
            tap = bring(tap, size) if bring else tap
            weight = weight * ((tap >= 0) & (tap < size))
            at.append(np.clip(tap, 0, size - 1).astype(int))
        total += image[(slice(None), *at)] * weight
    return total


def affine_grid_python(data, target_shape):
    """Where the pixels of images of a shape come from: (N, 2, H, W), x first, from -1 to 1."""
    rows, columns = (np.linspace(-1, 1, n, dtype=data.dtype) for n in target_shape)
    y, x = np.meshgrid(rows, columns, indexing="ij")
    return np.einsum("nij,jhw->nihw", data, np.stack([x, y, np.ones_like(x)]))


def _reflected(at, low, high):
    span = high - low
    if span == 0:
        return np.zeros_like(at)
    rest = np.mod(at - low, 2 * span)
    return low + np.minimum(rest, 2 * span - rest)


def grid_sample_python(
    data, grid, method="bilinear", layout="NCHW", padding_mode="zeros", align_corners=True
):
    """Images or volumes at places from -1 to 1; the grid has x, y (and z) along its second axis."""
    if layout not in ("NCHW", "NCDHW"):
        raise ValueError(f"layout: expected NCHW or NCDHW, got {layout}")
    sizes, places, bring = data.shape[2:], [], None
    for size, at in zip(sizes, np.moveaxis(grid, 1, 0)[::-1].astype(float), strict=True):
        low, high = (0, size - 1) if align_corners else (-0.5, size - 0.5)
        place = low + (at + 1) / 2 * (high - low)
        if padding_mode == "reflection" and method != "bicubic":
            place = np.clip(_reflected(place, low, high), 0, size - 1)
        elif padding_mode == "border" and method != "bicubic":
            place = np.clip(place, 0, size - 1)
        places.append(place)
    if method == "bicubic" and padding_mode == "border":
        bring = lambda tap, size: np.clip(tap, 0, size - 1)
    elif method == "bicubic" and padding_mode == "reflection":
        edge = 0 if align_corners else 0.5
        bring = lambda tap, size: np.clip(_reflected(tap, -edge, size - 1 + edge), 0, size - 1)
    images = [
        _sampled(image, [p[n] for p in places], method, bring) for n, image in enumerate(data)
    ]
    return np.stack(images).astype(data.dtype)


def crop_and_resize_python(
    image, boxes, box_indices, crop_size, layout, method="bilinear", extrapolation_value=0
):
    """Boxes (y1, x1, y2, x2), in shares of the image, as images of one size."""
    images = np.moveaxis(image, -1, 1) if layout == "NHWC" else image
    crops = np.empty((len(boxes), images.shape[1], *crop_size), image.dtype)
    for n, (box, index) in enumerate(zip(boxes, box_indices, strict=True)):
        sides = []
        for first, last, size, count in zip(
            box[:2], box[2:], images.shape[2:], crop_size, strict=True
        ):
            low, high = first * (size - 1), last * (size - 1)
            sides.append(np.linspace(low, high, count) if count > 1 else [(low + high) / 2])
        places = np.meshgrid(*sides, indexing="ij")
        inside = np.ones(crop_size, bool)
        for place, size in zip(places, images.shape[2:], strict=True):
            inside &= (place >= 0) & (place <= size - 1)
        if method == "nearest_neighbor":
            places = [np.floor(p + 0.5) for p in places]
        crops[n] = np.where(inside, _sampled(images[index], places), extrapolation_value)
    return np.moveaxis(crops, 1, -1) if layout == "NHWC" else crops


def deformable_conv2d_nchw_python(
    a_np, offset_np, w_np, stride, padding, dilation, deformable_groups, groups
):
    """A convolution whose taps are moved by offsets (N, groups * kernel * (y, x), H, W)."""
    pair = lambda value: (value, value) if np.isscalar(value) else tuple(value)
    stride, dilation, kernel = pair(stride), pair(dilation), w_np.shape[2:]
    pads = get_pad_tuple_generic(padding, kernel)
    batch, channels = a_np.shape[:2]
    height, width = offset_np.shape[2:]
    taps = np.empty((batch, channels, *kernel, height, width))
    moves = offset_np.reshape(batch, deformable_groups, *kernel, 2, height, width)
    each = channels // deformable_groups
    for n, g, ky, kx in np.ndindex(batch, deformable_groups, *kernel):
        y = np.arange(height)[:, None] * stride[0] + ky * dilation[0] - pads[0]
        x = np.arange(width) * stride[1] + kx * dilation[1] - pads[1]
        part = slice(g * each, (g + 1) * each)
        places = [y + moves[n, g, ky, kx, 0], x + moves[n, g, ky, kx, 1]]
        taps[n, part, ky, kx] = _sampled(a_np[n, part], places)
    parts = zip(np.split(taps, groups, 1), np.split(w_np, groups, 0), strict=True)
    sums = [np.einsum("nckxhw,ockx->nohw", x, w) for x, w in parts]
    return np.concatenate(sums, 1).astype(a_np.dtype)


def deformable_conv2d_nhwc_python(
    a_np, offset_np, w_np, stride, padding, dilation, deformable_groups, groups
):
    """The same with channels last, and a kernel (H, W, I, O)."""
    data, offset = (x.transpose(0, 3, 1, 2) for x in (a_np, offset_np))
    kernel = w_np.transpose(3, 2, 0, 1)
    result = deformable_conv2d_nchw_python(
        data, offset, kernel, stride, padding, dilation, deformable_groups, groups
    )
    return result.transpose(0, 2, 3, 1)


def correlation_nchw_python(
    data1, data2, kernel_size, max_displacement, stride1, stride2, padding, is_multiply
):
    """Patches of the first image beside patches of the second that are displaced."""
    sides = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    first, second = np.pad(data1, sides), np.pad(data2, sides)
    reach = max_displacement // stride2
    moves = np.arange(-reach, reach + 1) * stride2
    border = max_displacement + (kernel_size - 1) // 2
    height, width = (-(-(n - 2 * border) // stride1) for n in first.shape[2:])
    result = np.empty((len(first), len(moves) ** 2, height, width), data1.dtype)
    for y, x in np.ndindex(height, width):
        top, left = y * stride1 + max_displacement, x * stride1 + max_displacement
        patch = first[:, :, top : top + kernel_size, left : left + kernel_size]
        for place, (down, right) in enumerate(itertools.product(moves, moves)):
            rows = slice(top + down, top + down + kernel_size)
            other = second[:, :, rows, left + right : left + right + kernel_size]
            alike = patch * other if is_multiply else abs(patch - other)
            result[:, place, y, x] = alike.mean((1, 2, 3))
    return result


def roi_align_nchw_python(a_np, rois_np, pooled_size, spatial_scale, sample_ratio, mode=b"avg"):
    """Regions (image, x1, y1, x2, y2) as cells, each the mean or maximum of samples."""
    cells = (pooled_size, pooled_size) if np.isscalar(pooled_size) else tuple(pooled_size)
    result = np.zeros((len(rois_np), a_np.shape[1], *cells), a_np.dtype)
    for n, (index, x1, y1, x2, y2) in enumerate(rois_np):
        begins, sizes, counts = [], [], []
        for low, high, count in zip((y1, x1), (y2, x2), cells, strict=True):
            begins.append(low * spatial_scale)
            sizes.append(max((high - low) * spatial_scale, 1.0) / count)
            counts.append(sample_ratio if sample_ratio > 0 else int(np.ceil(sizes[-1])))
        for cell in np.ndindex(*cells):
            sides, inside = [], 1.0
            for c, begin, size, count in zip(cell, begins, sizes, counts, strict=True):
                sides.append(begin + (c + (np.arange(count) + 0.5) / count) * size)
            places = list(np.meshgrid(*sides, indexing="ij"))
            for axis, limit in enumerate(a_np.shape[2:]):
                inside = inside * ((places[axis] >= -1) & (places[axis] <= limit))
                places[axis] = np.clip(places[axis], 0, limit - 1)
            image = a_np[int(index)]
            if mode in (b"avg", "avg"):
                values = _sampled(image, places) * inside
                result[(n, slice(None), *cell)] = values.mean((1, 2))
            else:
                parts = _weighted_corners(image, places) * inside
                result[(n, slice(None), *cell)] = parts.max((0, 2, 3))
    return result


def _weighted_corners(image, places):
    """The four pixels around each place, each with its weight."""
    parts = []
    for steps in itertools.product((0, 1), repeat=2):
        weight, at = 1.0, []
        for place, step, size in zip(places, steps, image.shape[1:], strict=True):
            tap = np.floor(place) + step
            weight = weight * (1 - abs(place - tap))
            at.append(np.minimum(tap, size - 1).astype(int))
        parts.append(image[(slice(None), *at)] * weight)
    return np.stack(parts)


def roi_align_nhwc_python(a_np, rois_np, pooled_size, spatial_scale, sample_ratio, mode=b"avg"):
    """The same with channels last."""
    options = rois_np, pooled_size, spatial_scale, sample_ratio, mode
    return roi_align_nchw_python(a_np.transpose(0, 3, 1, 2), *options).transpose(0, 2, 3, 1)


def roi_pool_nchw_python(a_np, rois_np, pooled_size, spatial_scale):
    """The maxima of cells of regions (image, x1, y1, x2, y2) of whole pixels; 0 of empty ones."""
    cells = (pooled_size, pooled_size) if np.isscalar(pooled_size) else tuple(pooled_size)
    result = np.zeros((len(rois_np), a_np.shape[1], *cells), a_np.dtype)
    for n, (index, *corners) in enumerate(rois_np):
        x1, y1, x2, y2 = (int(np.floor(c * spatial_scale + 0.5)) for c in corners)
        for cell in np.ndindex(*cells):
            part = []
            sides = zip(cell, cells, (y1, x1), (y2, x2), a_np.shape[2:], strict=True)
            for c, count, low, high, limit in sides:
                size = max(high - low + 1, 1) / count
                first, last = low + int(np.floor(c * size)), low + int(np.ceil((c + 1) * size))
                part.append(slice(min(max(first, 0), limit), min(max(last, 0), limit)))
            values = a_np[(int(index), slice(None), *part)]
            if values.size:
                result[(n, slice(None), *cell)] = values.max((1, 2))
    return result
