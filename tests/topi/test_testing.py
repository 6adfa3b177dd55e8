# SPDX-License-Identifier: Apache-2.0
"""The references in NumPy agree with PyTorch, and the operators with them."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import tvm.topi.testing as ref
from tvm import topi

from .checking import check, values

X = values(2, 4, 7, 8)


def of(function, *arrays, **options):
    return function(*(torch.from_numpy(np.ascontiguousarray(a)) for a in arrays), **options).numpy()


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_convolutions():
    w = values(6, 2, 3, 3, seed=1)
    close(ref.conv2d_nchw_python(X, w, 2, 1, 2), of(F.conv2d, X, w, stride=2, padding=1, groups=2))
    nhwc, hwio = X.transpose(0, 2, 3, 1), values(3, 3, 4, 6, seed=1)
    expected = of(F.conv2d, X, hwio.transpose(3, 2, 0, 1), padding=1).transpose(0, 2, 3, 1)
    close(ref.conv2d_nhwc_python(nhwc, hwio, 1, "SAME"), expected)
    t = values(4, 3, 3, 3, seed=2)
    expected = of(F.conv_transpose2d, X, t, stride=2, padding=1, output_padding=1, groups=2)
    close(ref.conv2d_transpose_nchw_python(X, t, 2, 1, (1, 1), 2), expected)
    d = values(4, 2, 3, 3, seed=3)
    expected = of(F.conv2d, X, d.reshape(8, 1, 3, 3), padding=1, groups=4)
    close(ref.depthwise_conv2d_python_nchw(X, d, 1, "SAME"), expected)


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_pools(ceil_mode):
    options = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": ceil_mode}
    geometry = X, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)
    close(ref.poolnd_python(*geometry, "max", ceil_mode=ceil_mode), of(F.max_pool2d, X, **options))
    for include in (False, True):
        expected = of(F.avg_pool2d, X, count_include_pad=include, **options)
        close(ref.poolnd_python(*geometry, "avg", include, ceil_mode), expected)
    for name, pool in (("max", F.max_pool2d), ("avg", F.avg_pool2d)):
        t = torch.from_numpy(X).requires_grad_()
        out = pool(t, **options)
        g = values(*out.shape, seed=5)
        out.backward(torch.from_numpy(g))
        got = ref.pool_grad_nchw(X, g, (3, 3), (2, 2), (1, 1, 1, 1), name, ceil_mode)
        close(got, t.grad.numpy())
    close(
        ref.adaptive_pool(X, (3, 5), "avg", "NCHW"),
        of(F.adaptive_avg_pool2d, X, output_size=(3, 5)),
    )


def test_norms():
    g, b = values(8, seed=1), values(8, seed=2)
    tensors = {"weight": torch.from_numpy(g), "bias": torch.from_numpy(b)}
    expected = of(F.layer_norm, X, normalized_shape=(8,), **tensors)
    close(ref.layer_norm_python(X, g, b, -1), expected)
    close(
        ref.rms_norm_python(X, g, -1),
        of(F.rms_norm, X, normalized_shape=(8,), weight=tensors["weight"], eps=1e-5),
    )
    c, d = values(4, seed=3), values(4, seed=4)
    tensors = {"weight": torch.from_numpy(c), "bias": torch.from_numpy(d)}
    close(
        ref.group_norm_python(X, c, d, 2, 1, (2, 3)), of(F.group_norm, X, num_groups=2, **tensors)
    )
    close(ref.softmax_python(X, 1), of(F.softmax, X, dim=1))
    close(ref.log_softmax_python(X, 2), of(F.log_softmax, X, dim=2))
    close(
        ref.lrn_python(X, 3, 1, 1.5, 1e-2, 0.7),
        of(F.local_response_norm, X, size=3, alpha=1e-2, beta=0.7, k=1.5),
    )


def test_resizing():
    for method, mode in (("linear", "bilinear"), ("cubic", "bicubic")):
        expected = of(F.interpolate, X, scale_factor=2.0, mode=mode, align_corners=True)
        close(ref.resize2d_python(X, (2, 2), "NCHW", method), expected)


def test_operators_agree():
    check(lambda t: topi.nn.space_to_depth(t, 1), [X], ref.space_to_depth_python(X, 1))
    even = values(1, 8, 4, 6)
    check(lambda t: topi.nn.depth_to_space(t, 2), [even], ref.depth_to_space_python(even, 2))
    there = ref.space_to_batch_nd_python(even.transpose(0, 2, 3, 1), (2, 3), (0, 0), (0, 0))
    np.testing.assert_array_equal(
        ref.batch_to_space_nd_python(there, (2, 3), (0, 0), (0, 0)), even.transpose(0, 2, 3, 1)
    )
    i = np.array([0, 2, 1])
    check(lambda t: topi.one_hot(t, 1, 0, 4, -1, "int8"), [i], ref.one_hot(i, 1, 0, 4, -1, "int8"))
    expected = ref.strided_slice_python(X, [0, 3], [2, 0], [1, -2])
    check(lambda t: topi.strided_slice(t, [0, 3], [2, 0], [1, -2]), [X], expected)
    m, d = values(3, 5), values(3, seed=1)
    check(topi.matrix_set_diag, [m, d], ref.matrix_set_diag(m, d))


@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample(method, padding, align):
    grid = values(2, 5, 4, 2, seed=1, low=-1.7, high=1.7)
    options = {"mode": method, "padding_mode": padding, "align_corners": align}
    expected = of(F.grid_sample, X, grid, **options)
    got = ref.grid_sample_python(X, grid.transpose(0, 3, 1, 2), method, "NCHW", padding, align)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)


def test_sampling():
    theta = values(2, 2, 3)
    expected = of(F.affine_grid, theta, size=(2, 1, 4, 5), align_corners=True)
    close(ref.affine_grid_python(theta, (4, 5)), expected.transpose(0, 3, 1, 2))
    boxes = np.array([[0, 0.1, 1.2, 1], [0.3, 0.2, 0.7, 0.9]], "float32")
    index = np.array([1, 0], "int32")
    for layout, image in (("NCHW", X), ("NHWC", X.transpose(0, 2, 3, 1).copy())):
        options = (3, 5), layout, "bilinear", 9.0
        expected = ref.crop_and_resize_python(image, boxes, index, *options)
        build = lambda d, b, i, o=options: topi.image.crop_and_resize(d, b, i, *o)
        check(build, [image, boxes, index], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups, deformable_groups", [(1, 1), (2, 2), (2, 1)])
def test_deformable_convolution(groups, deformable_groups):
    offset = values(2, deformable_groups * 18, 4, 4, seed=1)
    w = values(6, 4 // groups, 3, 3, seed=2)
    options = 2, 1, 1, deformable_groups, groups
    expected = ref.deformable_conv2d_nchw_python(X, offset, w, *options)
    build = lambda x, o, w: topi.nn.deformable_conv2d_nchw(x, o, w, *options, "float32")
    check(build, [X, offset, w], expected, rtol=1e-4, atol=1e-4)
    still = ref.deformable_conv2d_nchw_python(X, 0 * offset, w, *options)
    close(still, of(F.conv2d, X, w, stride=2, padding=1, groups=groups))
    last = [X.transpose(0, 2, 3, 1), offset.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)]
    last = [a.copy() for a in last]
    moved = ref.deformable_conv2d_nhwc_python(*last, *options)
    close(moved, expected.transpose(0, 2, 3, 1))
    build = lambda x, o, w: topi.nn.deformable_conv2d_nhwc(x, o, w, *options, "float32")
    check(build, last, moved, rtol=1e-4, atol=1e-4)


def test_gradients_of_kernels():
    w = values(6, 2, 3, 3, seed=1)
    t = torch.from_numpy(w).requires_grad_()
    out = F.conv2d(torch.from_numpy(X), t, stride=2, padding=1, groups=2)
    g = values(*out.shape, seed=2)
    out.backward(torch.from_numpy(g))
    got = ref.conv2d_backward_weight_python(g, X, (3, 3), 2, 1, groups=2)
    close(got, t.grad.numpy())
    last = [a.transpose(0, 2, 3, 1) for a in (g, X)]
    got = ref.conv2d_backward_weight_python(*last, (3, 3), 2, 1, "NHWC", groups=2)
    close(got, t.grad.numpy().transpose(0, 2, 3, 1))
    x = X.reshape(2, 2, 2, 7, 8).transpose(0, 1, 3, 4, 2)
    k = values(8, 1, 3, 3, seed=3)
    blocks = k.reshape(2, 4, 1, 3, 3).transpose(0, 2, 3, 4, 1)[:, :, :, :, None]
    expected = of(F.conv2d, X, k, padding=1, groups=4).reshape(2, 2, 4, 7, 8)
    got = ref.depthwise_conv2d_python_nchwc(x, blocks, 1, 1)
    close(got, expected.transpose(0, 1, 3, 4, 2))


def test_regions():
    rois = np.array([[0, 1, 1, 6, 5], [1, 0, 2, 3, 3], [1, 5, 5, 5, 5]], "float32")
    flat = np.full((2, 3, 7, 8), 2, "float32")
    close(ref.roi_align_nchw_python(flat, rois, 3, 1.0, 2), np.full((3, 3, 3, 3), 2))
    x = np.arange(56, dtype="float32").reshape(1, 1, 7, 8)
    # Samples of a plane have the mean of its value in the middle of a cell.
    expected = [[[[8 * y + x for x in (2, 4)] for y in (2, 4)]]]
    close(ref.roi_align_nchw_python(x, [[0, 1, 1, 5, 5]], 2, 1.0, 2), expected)
    nhwc = X.transpose(0, 2, 3, 1)
    for mode in (b"avg", b"max"):
        first = ref.roi_align_nchw_python(X, rois, (2, 3), 0.7, 0, mode)
        last = ref.roi_align_nhwc_python(nhwc, rois, (2, 3), 0.7, 0, mode)
        close(last, first.transpose(0, 2, 3, 1))
    pooled = ref.roi_pool_nchw_python(x, [[0, 1, 1, 4, 4], [0, 9, 9, 9, 9]], 2, 1.0)
    close(pooled[:, 0], [[[18, 20], [34, 36]], [[0, 0], [0, 0]]])
