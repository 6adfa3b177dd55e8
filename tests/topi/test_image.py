# SPDX-License-Identifier: Apache-2.0
"""Resizing and sampling of images against PyTorch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tvm import te, topi

from .checking import check, values


def of(function, *arrays, **options):
    return function(*(torch.from_numpy(np.ascontiguousarray(a)) for a in arrays), **options).numpy()


X = values(2, 3, 6, 8)
MODES = {
    1: {"linear": "linear"},
    2: {"linear": "bilinear", "cubic": "bicubic"},
    3: {"linear": "trilinear"},
}
RESIZE = {1: topi.image.resize1d, 2: topi.image.resize2d, 3: topi.image.resize3d}
SIZES = {1: [(13,), (4,), (1,)], 2: [(9, 5), (12, 16), (3, 4), (1, 1)], 3: [(5, 7, 3), (2, 2, 9)]}


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_resize(dims):
    x = values(2, 3, *(6, 8, 5)[:dims])
    op = RESIZE[dims]
    for size in SIZES[dims]:
        expected = of(F.interpolate, x, size=size, mode="nearest")
        build = lambda t, s=size: op(
            t,
            None,
            s,
            method="nearest_neighbor",
            coordinate_transformation_mode="asymmetric",
            rounding_method="floor",
        )
        check(build, [x], expected)
        for ours, mode in MODES[dims].items():
            for align in (False, True):
                coordinates = "align_corners" if align else "half_pixel"
                expected = of(F.interpolate, x, size=size, mode=mode, align_corners=align)
                build = lambda t, s=size, m=ours, c=coordinates: op(
                    t, None, s, method=m, coordinate_transformation_mode=c
                )
                check(build, [x], expected, rtol=1e-4, atol=1e-4)


def test_resize_of_other_layouts():
    expected = of(F.interpolate, X, size=(9, 5), mode="bilinear", align_corners=False)
    build = lambda t: topi.image.resize2d(t, None, (9, 5), "NHWC")
    check(build, [X.transpose(0, 2, 3, 1).copy()], expected.transpose(0, 2, 3, 1), rtol=1e-4)


def test_rounding():
    row = np.arange(4, dtype="float32").reshape(1, 1, 4)
    resize = lambda size, rounding, mode="half_pixel": (
        lambda t: topi.image.resize1d(t, None, size, "NCW", "nearest_neighbor", mode, rounding)
    )
    # Places of the halves: 0.5, 2.5.
    for rounding, expected in {
        "round_prefer_floor": [0, 2],
        "round_prefer_ceil": [1, 3],
        "round": [0, 2],
        "floor": [0, 2],
        "ceil": [1, 3],
    }.items():
        check(resize(2, rounding), [row], np.array([[expected]], "float32"))
    check(resize(2, "floor", "tf_half_pixel_for_nn"), [row], np.array([[[1, 3]]], "float32"))
    check(resize(1, "floor", "pytorch_half_pixel"), [row], np.array([[[0]]], "float32"))


def test_regions():
    image = np.arange(16, dtype="float32").reshape(1, 1, 4, 4)
    build = lambda t: topi.image.resize2d(
        t,
        (0.0, 0.0, 1.0, 2.0),
        (4, 7),
        "NCHW",
        "linear",
        "tf_crop_and_resize",
        extrapolation_value=9.0,
    )
    expected = np.full((1, 1, 4, 7), 9, "float32")
    expected[..., :4] = image  # steps of one pixel; behind the last there is nothing
    check(build, [image], expected)


def test_crop_and_resize():
    boxes = np.array([[0, 0, 1, 1], [1 / 3, 1 / 3, 2 / 3, 2 / 3]], "float32")
    images = np.arange(32, dtype="float32").reshape(2, 1, 4, 4)
    index = np.array([1, 0], "int32")
    expected = np.stack([images[1], images[0]])[:, :, [0, 3]][..., [0, 3]]
    expected[1, 0] = images[0, 0, 1:3, 1:3]
    check(
        lambda d, b, i: topi.image.crop_and_resize(d, b, i, (2, 2)),
        [images, boxes, index],
        expected,
    )


@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample(method, padding, align):
    grid = values(2, 5, 4, 2, seed=1, low=-1.7, high=1.7)
    options = {"mode": method, "padding_mode": padding, "align_corners": align}
    expected = of(F.grid_sample, X, grid, **options)
    build = lambda d, g: topi.image.grid_sample(d, g, method, "NCHW", padding, align)
    check(build, [X, grid.transpose(0, 3, 1, 2).copy()], expected, rtol=1e-3, atol=1e-3)


def test_grid_sample_of_volumes():
    x, grid = values(2, 3, 4, 5, 6), values(2, 3, 4, 5, 3, seed=1, low=-1.3, high=1.3)
    for method in ("nearest", "bilinear"):
        expected = of(F.grid_sample, x, grid, mode=method, align_corners=True)
        build = lambda d, g, m=method: topi.image.grid_sample(d, g, m, "NCDHW")
        check(build, [x, grid.transpose(0, 4, 1, 2, 3).copy()], expected, rtol=1e-3, atol=1e-3)


def test_affine_grid():
    theta = values(2, 2, 3)
    expected = of(F.affine_grid, theta, size=(2, 1, 4, 5), align_corners=True)
    check(lambda t: topi.image.affine_grid(t, (4, 5)), [theta], expected.transpose(0, 3, 1, 2))


def test_dilation():
    x, w = values(1, 2, 5, 6), values(2, 2, 3, seed=1)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (2, 3))
    expected = (windows + w[:, None, None]).max((-2, -1))
    check(lambda x, w: topi.image.dilation2d_nchw(x, w, 1, 0, 1), [x, w], expected)
    moved = [x.transpose(0, 2, 3, 1).copy(), w.transpose(1, 2, 0).copy()]
    check(
        lambda x, w: topi.image.dilation2d_nhwc(x, w, 1, 0, 1),
        moved,
        expected.transpose(0, 2, 3, 1),
    )


def test_wrong_arguments():
    D = te.placeholder((1, 2, 4, 4))
    with pytest.raises(ValueError, match="resize: expected coordinate_transformation_mode"):
        topi.image.resize2d(D, None, (2, 2), coordinate_transformation_mode="corner")
    with pytest.raises(ValueError, match='resize2d: expected method "nearest_neighbor"'):
        topi.image.resize2d(D, None, (2, 2), method="lanczos")
    with pytest.raises(ValueError, match="resize2d: expected a layout with 2 of D, H, W"):
        topi.image.resize2d(D, None, (2, 2), "NCDHW")
    with pytest.raises(ValueError, match="grid_sample: expected padding_mode"):
        topi.image.grid_sample(D, te.placeholder((1, 2, 3, 3)), padding_mode="wrap")
