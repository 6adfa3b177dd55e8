# SPDX-License-Identifier: Apache-2.0
"""Entries of operators on images and boxes, and of quantisation."""

import numpy as np
import torch
import torch.nn.functional as F

from .core import S, T, case, entry
from .nn import by_torch


def _resize(
    x,
    size,
    layout="NCHW",
    method="linear",
    coordinate_transformation_mode="half_pixel",
    rounding_method="round",
    out_dtype=None,
):
    size = [size] * 2 if isinstance(size, int) else size
    dtype = getattr(torch, out_dtype) if out_dtype else x.dtype
    x = x.permute([layout.index(c) for c in "NCHW"]).double()
    mode = {"linear": "bilinear", "nearest_neighbor": "nearest", "cubic": "bicubic"}[method]
    corners = coordinate_transformation_mode == "align_corners"
    y = F.interpolate(
        x, tuple(size), mode=mode, align_corners=corners if mode != "nearest" else None
    )
    y = y.permute(["NCHW".index(c) for c in layout])
    return y.to(dtype)


entry(
    "image.resize2d",
    by_torch(_resize),
    [
        case(T(1, 2, 5, 7), S((10, 14))),
        case(T(1, 2, 5, 7), 3),
        case(T(1, 2, 6, 6), S((4, 9)), coordinate_transformation_mode="align_corners"),
        case(
            T(1, 2, 6, 6),
            S((12, 12)),
            method="nearest_neighbor",
            coordinate_transformation_mode="asymmetric",
            rounding_method="floor",
        ),
        case(T(1, 6, 6, 2), S((3, 3)), layout="NHWC"),
        case(T(1, 2, 5, 7), S((10, 14)), out_dtype="float64"),
        case(T(0, 2, 5, 7), S((3, 3))),
        case(T(1, 1, 1, 1), S((3, 3))),
    ],
    rtol=1e-4,
)


def _grid_sample(
    x, grid, method="bilinear", layout="NCHW", padding_mode="zeros", align_corners=False
):
    return F.grid_sample(x, grid, method, padding_mode, align_corners)


entry(
    "image.grid_sample",
    by_torch(_grid_sample),
    [
        case(T(1, 2, 5, 7), T(1, 3, 4, 2, low=-1, high=1, fixed=(3,))),
        case(T(2, 1, 6, 6), T(2, 5, 5, 2, fixed=(3,)), padding_mode="border"),
        case(T(1, 2, 5, 7), T(1, 3, 4, 2, fixed=(3,)), method="nearest", align_corners=True),
        case(T(1, 2, 5, 7), T(1, 3, 4, 2, fixed=(3,)), padding_mode="reflection"),
        case(T(1, 2, 5, 7), T(1, 0, 4, 2, fixed=(3,))),
    ],
    rtol=1e-4,
)


def _overlap(a, b):
    y = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    x = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    area = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return y * x / (area[0] + area[1] - y * x)


def _nms(boxes, scores, max_boxes, iou, threshold, output_format="onnx"):
    batch, classes, count = scores.shape
    found = []
    for b, c in np.ndindex(batch, classes):
        kept = []
        for i in np.argsort(-scores[b, c], kind="stable"):
            if len(kept) == int(max_boxes) or not scores[b, c, i] > threshold:
                break
            if all(_overlap(boxes[b, i], boxes[b, k]) <= iou for k in kept):
                kept.append(i)
        found += [(b, c, i) for i in kept]
    out = np.zeros((batch * classes * count, 3), "int64")
    out[: len(found)] = np.array(found, "int64").reshape(-1, 3)
    return out, np.array([len(found)], "int64")


_BOXES = [[[0, 0, 1, 1], [0, 0, 1, 0.9], [0, 2, 1, 3], [0, 2.1, 1, 3.1]]]
entry(
    "vision.all_class_non_max_suppression",
    _nms,
    [
        case(
            T(values=_BOXES, fixed=(2,)),
            T(1, 2, 4, low=0, high=1),
            T(values=3, dtype="int64"),
            T(values=0.5),
            T(values=0.1),
        ),
        case(
            T(values=_BOXES, fixed=(2,)),
            T(1, 1, 4, low=0, high=1),
            T(values=0, dtype="int64"),
            T(values=0.5),
            T(values=0.1),
        ),
        case(
            T(1, 0, 4, fixed=(2,)),
            T(1, 2, 0),
            T(values=3, dtype="int64"),
            T(values=0.5),
            T(values=0.1),
        ),
    ],
)


def _range(dtype):
    return (np.iinfo(dtype).min, np.iinfo(dtype).max)


def _along(v, x, axis):
    if v.ndim == 0 or v.size == 1:
        return v.reshape(())
    shape = [1] * x.ndim
    shape[axis] = -1
    return v.reshape(shape)


def _quantize(x, scale, zero, axis=-1, out_dtype="int8"):
    value = np.round(x / _along(scale, x, axis)) + _along(zero, x, axis)
    return np.clip(value, *_range(out_dtype)).astype(out_dtype)


def _dequantize(x, scale, zero, axis=-1, out_dtype="float32"):
    wide = x.astype("float64") - _along(zero, x, axis)
    return (wide * _along(scale, x, axis)).astype(out_dtype)


_ZERO = T(values=2, dtype="int8")
entry(
    "quantize",
    _quantize,
    [
        case(T(3, 5), T(values=0.1), _ZERO),
        case(T(3, 5), T(5, low=0.01, high=0.2), T(5, dtype="int8")),
        case(T(3, 5), T(3, low=0.01, high=0.2), T(3, dtype="int8"), axis=0),
        case(T(3, 5), T(values=0.001), _ZERO, out_dtype="uint8"),
        case(T(0, 5), T(values=0.1), _ZERO),
        case(T(values=[1e9, -1e9, 0.0]), T(values=0.1), _ZERO),
    ],
)
entry(
    "dequantize",
    _dequantize,
    [
        case(T(3, 5, dtype="int8"), T(values=0.1), _ZERO),
        case(T(3, 5, dtype="uint8"), T(5, low=0.01, high=0.2), T(5, dtype="int8")),
        case(T(3, 5, dtype="int32"), T(3, low=0.01, high=0.2), T(3, dtype="int8"), axis=0),
        case(T(0, 5, dtype="int8"), T(values=0.1), _ZERO),
        case(T(values=[-128, 127], dtype="int8"), T(values=0.5), _ZERO),
    ],
)
