# SPDX-License-Identifier: Apache-2.0
"""Workloads and comparisons of design spaces for tests of tuning."""

import numpy as np
import pytest
import tvm
from tvm import te
from tvm.meta_schedule.schedule_rule import MultiLevelTiling
from tvm.meta_schedule.testing import space_generation as sg
from tvm.meta_schedule.testing import te_workload as tw

from tests.tune import programs

torch = pytest.importorskip("torch")
F = torch.nn.functional


def run(tensors):
    rng = np.random.default_rng(0)
    shapes = [[int(e) for e in t.shape] for t in tensors]
    args = [rng.random(s, dtype="float32") for s in shapes]
    tvm.compile(te.create_prim_func(tensors), "llvm")(*args)
    return [torch.from_numpy(a) for a in args]


def first(x):
    """Channels first."""
    return x.movedim(-1, 1)


def last(x):
    return x.movedim(1, -1)


CASES = {
    "conv1d_nlc": (
        (2, 9, 4, 6, 3, 2, 1),
        lambda x, w: last(F.conv1d(first(x), w.permute(2, 1, 0), stride=2, padding=1)),
    ),
    "conv2d_nhwc": (
        (1, 8, 9, 4, 6, 3, 1, 2, 2, 2),
        lambda x, w: last(
            F.conv2d(first(x), w.permute(3, 2, 0, 1), padding=2, dilation=2, groups=2)
        ),
    ),
    "conv3d_ndhwc": (
        (1, 5, 6, 7, 2, 3, 3, 1, 1),
        lambda x, w: last(F.conv3d(first(x), w.permute(4, 3, 0, 1, 2), padding=1)),
    ),
    "depthwise_conv2d_nhwc": (
        (1, 8, 8, 4, 3, 1, 1),
        lambda x, w: last(F.conv2d(first(x), w.permute(3, 0, 1, 2), padding=1, groups=4)),
    ),
    "conv2d_transpose_nhwc": (
        (2, 5, 6, 3, 4, 4, 2, 1),
        lambda x, w: last(F.conv_transpose2d(first(x), w.permute(2, 3, 0, 1), stride=2, padding=1)),
    ),
    "conv2d_capsule_nhwijc": (
        (1, 7, 6, 3, 4, 3, 2, 1, 2),
        lambda x, w: sum(
            torch.einsum(
                "nhwikc,kjcd->nhwijd",
                F.pad(x, (0, 0, 0, 0, 0, 0, 1, 1, 1, 1))[:, h : h + 7 : 2, v : v + 5 : 2],
                w[h, v],
            )
            for h in range(3)
            for v in range(3)
        ),
    ),
    "conv2d_winograd_nhwc": (
        (2, 9, 8, 5, 6, 3, 1, 1),
        lambda x, w: last(F.conv2d(first(x), w.permute(3, 2, 0, 1), padding=1)),
    ),
    "conv2d_nchw_bias_bn_relu": (
        (1, 6, 7, 3, 4, 3, 3, 1, 1),
        lambda x, w, bias, offset, scale: F.relu(
            (F.conv2d(x, w, padding=1) + bias) * scale + offset
        ),
    ),
    "batch_matmul_nkkm": ((2, 3, 4, 5), lambda x, y: x @ y),
    "norm_bmn": ((3, 4, 5), lambda a: (a * a).sum((1, 2)).sqrt()),
    "transpose_batch_matmul": (
        (2, 5, 3, 4),
        lambda q, v: torch.einsum("bihd,bjhd->bhij", q, v),
    ),
    "matmul": ((4, 5, 6), lambda a, b: a @ b),
    "matmul_relu": ((4, 5, 6), lambda a, b: F.relu(a @ b)),
    "conv2d_nchw": (
        (1, 8, 9, 3, 4, 3, 2, 2, 1),
        lambda x, w: F.conv2d(x, w, stride=2, padding=1),
    ),
    "max_pool2d_nchw": ((1, 8, 6, 3, 0), lambda x: F.max_pool2d(x, 2)),
    "softmax_mn": ((4, 9), lambda a: torch.softmax(a, 1)),
    "conv2d_nhwc_bn_relu": (
        (1, 6, 6, 3, 4, 3, 1, 1),
        lambda x, w, bias, offset, scale: F.relu(
            (last(F.conv2d(first(x), w.permute(3, 2, 0, 1), padding=1)) + bias) * scale + offset
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_workloads(name):
    shape, want = CASES[name]
    *args, got = run(getattr(tw, name)(*shape))
    torch.testing.assert_close(got, want(*args), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("tile", "kernel"), [(2, 3), (6, 3), (4, 5), (1, 1)])
def test_winograd_of_other_tiles(tile, kernel):
    x, w, got = run(tw.conv2d_winograd_nhwc(1, 11, 9, 2, 3, kernel, tile_size=tile))
    want = last(F.conv2d(first(x), w.permute(3, 2, 0, 1)))
    torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-3)


def test_the_convolution_of_given_tensors():
    x, w = te.placeholder((1, 8, 8, 3), name="x"), te.placeholder((3, 3, 3, 4), name="w")
    out = tw.conv2d_nhwc_without_layout_rewrite(x, w, 2, 1, 1)
    a, b, got = run([x, w, out])
    want = last(F.conv2d(first(a), b.permute(3, 2, 0, 1), stride=2, padding=1))
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_workloads_that_are_not_defined_are_refused():
    with pytest.raises(ValueError, match="expected stride 1 and dilation 1, got stride 2"):
        tw.conv2d_winograd_nhwc(1, 8, 8, 2, 2, 3, stride=2)
    with pytest.raises(ValueError, match="expected a padding below kernel_size 3, got 3"):
        tw.conv2d_transpose_nhwc(1, 8, 8, 2, 2, 3, padding=3)


@pytest.mark.parametrize("name", tw.CONFIGS)
def test_configurations(name):
    for i in range(len(tw.CONFIGS[name][1])):
        assert isinstance(tw.create_te_workload(name, i), tvm.tir.PrimFunc)


def test_an_unknown_workload_is_refused():
    with pytest.raises(ValueError, match="create_te_workload: expected one of C1D.*got 'C9D'"):
        tw.create_te_workload("C9D", 0)


def test_sketches_are_compared():
    mod = tvm.IRModule({"main": programs.matmul()})
    sketches = sg.generate_design_space("llvm", mod, "llvm", MultiLevelTiling)
    assert len(sketches) == 3
    mods = [s.mod for s in sketches]
    decisions = [
        [(i.kind.name, s.trace.decisions[i]) for i in s.trace.insts if i in s.trace.decisions]
        for s in sketches
    ]
    sg.check_sketches(mod, sketches, mods[::-1], decisions[::-1])
    with pytest.raises(AssertionError, match="expected 1 sketches, got 3"):
        sg.check_sketches(mod, sketches, mods[:1], decisions[:1])
    with pytest.raises(AssertionError, match="none of the sketches is expected module 0"):
        sg.check_sketches(mod, sketches, [mod, mod, mod], decisions, debug_mask=[])
