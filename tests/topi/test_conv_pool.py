# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools against PyTorch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import tvm.topi.testing as reference
from tvm import te, topi

from .checking import blocks, check, compiled, values

FORWARD = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
LETTERS = {1: "W", 2: "HW", 3: "DHW"}
SIZE = {1: (17,), 2: (9, 11), 3: (5, 6, 7)}
# strides, padding, dilation, groups
OPTIONS = [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 1), (1, 1, 1, 2), (2, 1, 1, 4)]


def of(function, *arrays, **options):
    return function(*(torch.from_numpy(np.ascontiguousarray(a)) for a in arrays), **options).numpy()


def conv(
    dims, data_layout=None, kernel_layout=None, strides=1, padding=0, dilation=1, groups=1, out=None
):
    letters = LETTERS[dims]
    layouts = data_layout or "NC" + letters, kernel_layout or "OI" + letters
    return lambda x, w: topi.nn.conv(x, w, strides, padding, dilation, groups, *layouts, out)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("strides, padding, dilation, groups", OPTIONS)
def test_convolutions(dims, strides, padding, dilation, groups):
    x, w = values(2, 4, *SIZE[dims]), values(8, 4 // groups, *[3] * dims, seed=1)
    options = {"stride": strides, "padding": padding, "dilation": dilation, "groups": groups}
    expected = of(FORWARD[dims], x, w, **options)
    build = conv(dims, None, None, strides, padding, dilation, groups)
    check(build, [x, w], expected, rtol=1e-4, atol=1e-4)
    # Channels last.
    last, spatial = "N" + LETTERS[dims] + "C", range(2, dims + 2)
    build = conv(dims, last, LETTERS[dims] + "IO", strides, padding, dilation, groups)
    moved = [np.moveaxis(x, 1, -1).copy(), w.transpose(*spatial, 1, 0).copy()]
    check(build, moved, np.moveaxis(expected, 1, -1), rtol=1e-4, atol=1e-4)


def test_names_of_layouts():
    x, w = values(1, 4, 9, 9), values(6, 4, 3, 3, seed=1)
    expected = of(F.conv2d, x, w, padding=1)
    nhwc, hwio = x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy()
    check(lambda x, w: topi.nn.conv2d_nchw(x, w, 1, 1, 1), [x, w], expected, rtol=1e-4, atol=1e-4)
    check(
        lambda x, w: topi.nn.conv2d_nchw(x, w, 1, "SAME", 1), [x, w], expected, rtol=1e-4, atol=1e-4
    )
    check(
        lambda x, w: topi.nn.conv2d_nhwc(x, w, [1, 1], (1, 1, 1, 1), 1, "float32"),
        [nhwc, hwio],
        expected.transpose(0, 2, 3, 1),
        rtol=1e-4,
        atol=1e-4,
    )
    hwcn = x.transpose(2, 3, 1, 0).copy()
    check(
        lambda x, w: topi.nn.conv2d_hwcn(x, w, 1, 1, 1),
        [hwcn, hwio],
        expected.transpose(2, 3, 1, 0),
        rtol=1e-4,
        atol=1e-4,
    )
    build = lambda x, w: topi.nn.conv2d(x, w, 1, 1, 1, "NCHW")
    check(build, [x, w], expected, rtol=1e-4, atol=1e-4)
    grouped = values(6, 2, 3, 3, seed=2)
    check(
        lambda x, w: topi.nn.group_conv2d_nchw(x, w, 1, 0, 1, 2),
        [x, grouped],
        of(F.conv2d, x, grouped, groups=2),
        rtol=1e-4,
        atol=1e-4,
    )


def test_blocked_channels():
    x, w = values(1, 8, 6, 6), values(16, 8, 3, 3, seed=1)
    expected = of(F.conv2d, x, w, padding=1)
    data = x.reshape(1, 2, 4, 6, 6).transpose(0, 1, 3, 4, 2).copy()
    kernel = w.reshape(2, 8, 2, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1).copy()
    expected = expected.reshape(1, 2, 8, 6, 6).transpose(0, 1, 3, 4, 2)
    build = lambda x, w: topi.nn.conv2d_NCHWc(x, w, 1, 1, 1, "NCHW4c", "NCHW8c")
    check(build, [data, kernel], expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="a kernel in the blocks of"):
        topi.nn.conv2d_NCHWc(
            te.placeholder((1, 2, 6, 6, 4)),
            te.placeholder((2, 2, 3, 3, 8, 8)),
            1,
            1,
            1,
            "NCHW4c",
            "NCHW8c",
        )
    with pytest.raises(ValueError, match="a layout of NC"):
        topi.nn.conv2d(
            te.placeholder((1, 2, 6, 6, 4)), te.placeholder((2, 2, 3, 3)), 1, 1, 1, "NCHW4c"
        )


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pools_of_blocked_channels(kind):
    x = values(1, 8, 7, 7)
    data = x.reshape(1, 2, 4, 7, 7).transpose(0, 1, 3, 4, 2).copy()
    pool = F.max_pool2d if kind == "max" else F.avg_pool2d
    expected = of(pool, x, kernel_size=3, stride=2, padding=1)
    expected = expected.reshape(1, 2, 4, 4, 4).transpose(0, 1, 3, 4, 2)
    build = lambda x: topi.nn.pool2d(
        x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), kind, layout="NCHW4c", count_include_pad=True
    )
    check(build, [data], expected, rtol=1e-5, atol=1e-5)


def test_depthwise():
    x, w = values(2, 3, 8, 9), values(3, 2, 3, 3, seed=1)
    expected = of(F.conv2d, x, w.reshape(6, 1, 3, 3), stride=2, padding=1, groups=3)
    build = lambda x, w: topi.nn.depthwise_conv2d_nchw(x, w, 2, 1, 1)
    check(build, [x, w], expected)
    moved = [x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 0, 1).copy()]
    build = lambda x, w: topi.nn.depthwise_conv2d_nhwc(x, w, 2, 1, 1)
    check(build, moved, expected.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("dtype, out", [("int8", "int32"), ("float16", "float32")])
def test_wider_sums(dtype, out):
    x, w = values(1, 4, 6, 6, dtype=dtype, low=-9, high=9), values(4, 4, 3, 3, dtype=dtype, seed=1)
    expected = of(F.conv2d, x.astype("float32"), w.astype("float32")).astype(out)
    check(conv(2, out=out), [x, w], expected, rtol=1e-3, atol=1e-3)


def test_convolution_of_unknown_sizes():
    x, w = values(2, 4, 9, 11), values(8, 4, 3, 3, seed=1)
    expected = of(F.conv2d, x, w, padding=1)
    n, h, width = (te.size_var(v, "int64") for v in ("n", "h", "w"))
    X, W = te.placeholder((n, 4, h, width), name="X"), te.placeholder((8, 4, 3, 3), name="W")
    import tvm

    func = te.create_prim_func([X, W, topi.nn.conv2d_nchw(X, W, 1, 1, 1)])
    out = tvm.runtime.empty(expected.shape, "float32")
    tvm.compile(func, target="llvm")(tvm.runtime.tensor(x), tvm.runtime.tensor(w), out)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(
    "strides, padding, more, groups", [(1, 0, 0, 1), (2, 1, 1, 1), (3, 4, 2, 2)]
)
def test_transposed_convolutions(dims, strides, padding, more, groups):
    x, w = values(2, 4, *[5] * dims), values(4, 6 // groups, *[3] * dims, seed=1)
    options = {"stride": strides, "padding": padding, "output_padding": more, "groups": groups}
    expected = of(TRANSPOSED[dims], x, w, **options)
    names = {1: "conv1d_transpose_ncw", 2: "conv2d_transpose_nchw", 3: "conv3d_transpose_ncdhw"}
    arguments = [strides, padding, "float32", more]
    op = getattr(topi.nn, ("group_" if groups > 1 else "") + names[dims])
    if groups > 1:
        arguments.append(groups)
    check(lambda x, w: op(x, w, *arguments), [x, w], expected, rtol=1e-4, atol=1e-4)


# ---- pools ------------------------------------------------------------------------------------
MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
MEAN = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kernel, stride, padding", [(2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 3, 1)])
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_pools(dims, kernel, stride, padding, ceil_mode):
    x = values(2, 3, *SIZE[dims])
    op = getattr(topi.nn, f"pool{dims}d")
    options = {"kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil_mode}
    build = lambda t: op(t, kernel, stride, 1, padding, "max", ceil_mode)
    check(build, [x], of(MAX[dims], x, **options))
    for include in (False, True):
        expected = of(MEAN[dims], x, count_include_pad=include, **options)
        build = lambda t, i=include: op(
            t, kernel, stride, 1, padding, "avg", ceil_mode, count_include_pad=i
        )
        check(build, [x], expected)
    last = np.moveaxis(x, 1, -1).copy()
    build = lambda t: op(t, kernel, stride, 1, padding, "max", ceil_mode, "N" + LETTERS[dims] + "C")
    check(build, [last], np.moveaxis(of(MAX[dims], x, **options), 1, -1))


def test_dilated_pool_and_infinities():
    x = values(1, 2, 9, 9)
    x[0, 0] = -np.inf
    expected = of(F.max_pool2d, x, kernel_size=3, stride=2, padding=1, dilation=2)
    check(lambda t: topi.nn.pool2d(t, 3, 2, 2, 1, "max"), [x], expected)


@pytest.mark.parametrize("size", [1, 3, (4, 2), (9, 11), (5, 13)])
def test_adaptive_pools(size):
    x = values(2, 3, 9, 11)
    check(
        lambda t: topi.nn.adaptive_pool(t, size, "avg"),
        [x],
        of(F.adaptive_avg_pool2d, x, output_size=size),
    )
    check(
        lambda t: topi.nn.adaptive_pool(t, size, "max"),
        [x],
        of(F.adaptive_max_pool2d, x, output_size=size),
    )


def test_adaptive_pools_of_other_dimensions():
    x = values(2, 3, 10)
    check(
        lambda t: topi.nn.adaptive_pool1d(t, 4, "avg"),
        [x],
        of(F.adaptive_avg_pool1d, x, output_size=4),
    )
    y = values(1, 2, 5, 6, 7)
    check(
        lambda t: topi.nn.adaptive_pool3d(t, 3, "avg"),
        [y],
        of(F.adaptive_avg_pool3d, y, output_size=3),
    )
    z = values(2, 3, 9, 11)
    check(lambda t: topi.nn.global_pool(t, "avg"), [z], z.mean((2, 3), keepdims=True))
    check(lambda t: topi.nn.adaptive_pool(t, (), "avg"), [z], z)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 5, "stride": 1, "padding": 2},
        {"kernel_size": (7, 4), "stride": (2, 1), "padding": (3, 2), "ceil_mode": True},
        {"kernel_size": 5, "stride": 1, "dilation": 2},
    ],
)
def test_large_windows_of_max_pools(options):
    """Axis by axis: also where there are NaN and infinities."""
    x = values(2, 3, 17, 14)
    x[0, 1, 4, 5], x[1, 0, 0, 0], x[1, 2, 16, 13], x[0, 0, 9, 9] = np.nan, -np.inf, np.inf, np.nan
    pair = lambda value: (value, value) if isinstance(value, int) else value
    kernel, stride, padding, dilation = (
        pair(options.get(name, default))
        for name, default in (
            ("kernel_size", 1),
            ("stride", 1),
            ("padding", 0),
            ("dilation", 1),
        )
    )
    ceil = options.get("ceil_mode", False)
    build = lambda t: topi.nn.pool2d(t, kernel, stride, dilation, padding * 2, "max", ceil)
    expected = of(F.max_pool2d, x, **options)
    check(build, [x], expected)
    assert "pool_max_lines" in blocks(compiled(build, [x]).func)


@pytest.mark.parametrize("pool_type", ["max", "avg"])
def test_gradients_of_pools(pool_type):
    x = values(2, 3, 9, 8)
    options = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}
    t = torch.from_numpy(x).requires_grad_()
    out = (F.max_pool2d if pool_type == "max" else F.avg_pool2d)(t, **options)
    g = values(*out.shape, seed=3)
    out.backward(torch.from_numpy(g))
    build = lambda g, x: topi.nn.pool_grad(g, x, (3, 3), (2, 2), (1, 1, 1, 1), pool_type, True)
    check(build, [g, x], t.grad.numpy())


def test_blocks():
    names = lambda build, *shapes: blocks(compiled(build, [values(*s) for s in shapes]).func)
    x, w = (1, 4, 8, 8), (4, 4, 3, 3)
    assert names(conv(2), x, w) == ["pad_temp", "conv2d_nchw"]
    assert names(conv(2, groups=2), x, (4, 2, 3, 3)) == ["pad_temp", "group_conv2d_nchw"]
    transposed = lambda x, w: topi.nn.conv2d_transpose_nchw(x, w, 2, 1, None, 0)
    steps = ["data_dilate", "data_pad", "kernel_transform", "compute"]
    assert sorted(names(transposed, x, w)) == sorted(steps)
    assert names(lambda t: topi.nn.pool2d(t, 2, 2, 1, 1, "max"), x) == ["pad_temp", "pool_max"]
    assert names(lambda t: topi.nn.pool2d(t, 2, 2, 1, 0, "avg"), x) == ["pool_sum", "pool_avg"]
    adaptive = ["adaptive_pool_sum", "adaptive_pool_avg"]
    assert names(lambda t: topi.nn.adaptive_pool(t, 3, "avg"), x) == adaptive


def test_wrong_arguments():
    X, W = te.placeholder((1, 4, 8, 8)), te.placeholder((4, 3, 3, 3))
    with pytest.raises(ValueError, match="conv2d: expected as many channels in data and kernel"):
        topi.nn.conv2d_nchw(X, W, 1, 0, 1)
    with pytest.raises(ValueError, match="conv2d: expected groups that divide the channels"):
        topi.nn.group_conv2d_nchw(X, W, 1, 0, 1, 3)
    with pytest.raises(ValueError, match='pool2d: expected pool_type "max" or "avg"'):
        topi.nn.pool2d(X, 2, 2, 1, 0, "sum")
    with pytest.raises(ValueError, match="conv2d: expected 2 numbers as padding"):
        topi.nn.conv2d_nchw(X, te.placeholder((4, 4, 3, 3)), 1, (1, 2, 3), 1)
    with pytest.raises(ValueError, match="a layout of NC and D, H, W"):
        topi.nn.pool2d(X, 2, 2, 1, 0, "max", layout="NCHWX")
    with pytest.raises(ValueError, match="output_padding below the stride"):
        topi.nn.conv2d_transpose_nchw(X, te.placeholder((4, 4, 3, 3)), 2, 0, None, 2)


@pytest.mark.parametrize("each", [1, 2])
def test_depthwise_convolutions_in_blocks(each):
    x, w = values(2, 8, 9, 7), values(8 * each, 1, 3, 3, seed=1)
    expected = of(F.conv2d, x, w, stride=2, padding=1, groups=8)
    in_blocks = lambda a, size: np.moveaxis(a.reshape(len(a), -1, size, *a.shape[2:]), 2, -1).copy()
    kernels = np.moveaxis(w.reshape(-1, 4, 1, 3, 3), 1, -1)[:, :, :, :, None].copy()
    check(
        lambda x, w: topi.nn.depthwise_conv2d_NCHWc(x, w, 2, 1, 1, "NCHW2c", "NCHW4c"),
        [in_blocks(x, 2), kernels],
        in_blocks(expected, 4),
        rtol=1e-4,
        atol=1e-4,
    )
    check(
        lambda x: topi.nn.unpack_NCHWc_to_nchw(x, "float64"), [in_blocks(x, 2)], x.astype("float64")
    )


@pytest.mark.parametrize("signed", [True, False])
def test_small_integers_in_blocks(signed):
    """Kernels with four inputs together; sums beyond the range of 8 bits."""
    dtype = "int8" if signed else "uint8"
    x = values(1, 8, 6, 7, dtype=dtype, low=-99 if signed else 0, high=99)
    w = values(16, 8, 3, 3, dtype="int8", seed=1, low=-99, high=99)
    expected = of(F.conv2d, x.astype("float64"), w.astype("float64"), stride=2, padding=1)
    data = x.reshape(1, 1, 8, 6, 7).transpose(0, 1, 3, 4, 2).copy()
    kernel = w.reshape(2, 8, 1, 2, 4, 3, 3).transpose(0, 2, 5, 6, 3, 1, 4).copy()
    expected = expected.reshape(1, 2, 8, 3, 4).transpose(0, 1, 3, 4, 2).astype("int32")
    build = lambda x, w: topi.nn.conv2d_NCHWc_int8(x, w, 2, 1, 1, "NCHW8c", "NCHW8c")
    check(build, [data, kernel], expected)
    with pytest.raises(ValueError, match="conv2d_NCHWc_int8: expected kernels of 2 inputs"):
        arguments = te.placeholder(data.shape, dtype), te.placeholder(kernel.shape, "int8")
        topi.nn.conv2d_NCHWc_int8(*arguments, 2, 1, 1, "NCHW8c", "NCHW8c", "int32", 2)
    with pytest.raises(ValueError, match="conv2d_NCHWc: expected a layout such as NCHW16c"):
        topi.nn.conv2d_NCHWc_int8(*arguments, 2, 1, 1, "NCHW", "NCHW8c")


@pytest.mark.parametrize("block", [None, 4])
def test_results_in_blocks(block):
    x, w = values(1, 8, 6, 6), values(16, 8, 3, 3, seed=1)
    expected = of(F.conv2d, x, w, padding=1).reshape(1, 2, 8, 6, 6).transpose(0, 1, 3, 4, 2)
    kernel = w.reshape(2, 8, 8, 3, 3).transpose(0, 2, 3, 4, 1).copy()
    data = x.reshape(1, 2, 4, 6, 6).transpose(0, 1, 3, 4, 2).copy() if block else x
    layout = "NCHW4c" if block else "NCHW"
    build = lambda x, w: topi.nn.conv2d_NCHWc_OIHWo(x, w, 1, 1, 1, layout, "NCHW8c")
    check(build, [data, kernel], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dims", [2, 3])
def test_transposed_convolutions_in_two_steps(dims):
    """What the first step gives is data and kernel of a plain convolution."""
    x, w = values(2, 4, *[5] * dims), values(4, 6, *[3] * dims, seed=1)
    expected = of(TRANSPOSED[dims], x, w, stride=2, padding=1, output_padding=1)
    name = {2: "conv2d_transpose_nchw", 3: "conv3d_transpose_ncdhw"}[dims]
    arguments = 2, 1, "float32", 1
    prepare = getattr(topi.nn, name + "_preprocess")
    build = lambda x, w: conv(dims)(*prepare(x, w, *arguments))
    check(build, [x, w], expected, rtol=1e-4, atol=1e-4)
    whole = getattr(topi.nn, f"declaration_conv{dims}d_transpose_impl")
    check(lambda x, w: whole(x, w, *arguments), [x, w], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("stride, padding, size", [(1, 1, 7), (2, 1, 8), ((2, 3), (0, 1), 9)])
def test_gradients_of_depthwise(stride, padding, size):
    x, w = values(2, 3, size, size), values(3, 2, 3, 3, seed=1)
    tx, tw = (torch.from_numpy(a).requires_grad_() for a in (x, w))
    out = F.conv2d(tx, tw.reshape(6, 1, 3, 3), stride=stride, padding=padding, groups=3)
    g = values(*out.shape, seed=2)
    out.backward(torch.from_numpy(g))
    last, kernel = (0, 2, 3, 1), (2, 3, 0, 1)
    nhwc, hwcm, grad = (
        x.transpose(last).copy(),
        w.transpose(kernel).copy(),
        g.transpose(last).copy(),
    )
    build = lambda w, g: topi.nn.depthwise_conv2d_backward_input_nhwc(
        w, g, grad.shape, nhwc.shape, stride, padding
    )
    expected = tx.grad.numpy().transpose(last)
    check(build, [hwcm, grad], expected, rtol=1e-4, atol=1e-4)
    build = lambda x, g: topi.nn.depthwise_conv2d_backward_weight_nhwc(
        x, g, grad.shape, hwcm.shape, stride, padding
    )
    expected = tw.grad.numpy().transpose(kernel)
    check(build, [nhwc, grad], expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match=r"backward_input_nhwc: expected a gradient \(2, "):
        topi.nn.depthwise_conv2d_backward_input_nhwc(
            te.placeholder(hwcm.shape), te.placeholder((2, 1, 1, 6)), (2, 1, 1, 6), nhwc.shape, 1, 0
        )


@pytest.mark.parametrize("is_multiply", [True, False])
@pytest.mark.parametrize(
    "kernel_size, displacement, stride1, stride2, padding",
    [(1, 2, 1, 1, 2), (3, 4, 2, 2, 4), (3, 2, 1, 2, 1)],
)
def test_correlation(kernel_size, displacement, stride1, stride2, padding, is_multiply):
    a, b = values(2, 3, 11, 13), values(2, 3, 11, 13, seed=1)
    options = kernel_size, displacement, stride1, stride2, padding, is_multiply
    check(
        lambda a, b: topi.nn.correlation_nchw(a, b, *options),
        [a, b],
        reference.correlation_nchw_python(a, b, *options),
        rtol=1e-4,
        atol=1e-5,
    )


def test_correlation_of_images_that_do_not_fit():
    a = te.placeholder((1, 3, 8, 8))
    for shape in ((1, 2, 8, 8), (1, 3, 8, 7)):
        with pytest.raises(ValueError, match="correlation_nchw: expected images of one shape"):
            topi.nn.correlation_nchw(a, te.placeholder(shape), 1, 1, 1, 1, 1, True)
    for sizes in ((0, 1, 1, 1), (1, -1, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0), (2**15, 1, 1, 1)):
        with pytest.raises(ValueError, match=r"correlation_nchw: expected \w+ in \[[01], 2\^15\)"):
            topi.nn.correlation_nchw(a, a, *sizes, 1, True)
