# SPDX-License-Identifier: Apache-2.0
"""Different elements, segments, histograms, samples of images and boxes, against PyTorch."""

import math

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from tvm.relax.frontend.torch import relax_dynamo  # noqa: E402

from .run import assert_same, check  # noqa: E402


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def test_different_elements():
    x = torch.tensor([[3.0, 3.0, 1.0], [2.0, 2.0, 2.0], [2.0, 2.0, 2.0]])

    def function(x):
        return [
            *torch.unique(x, return_inverse=True, return_counts=True), torch.unique(x),
            *torch.unique(x, dim=0, return_inverse=True, return_counts=True),
            *torch.unique_consecutive(x, return_inverse=True, return_counts=True),
            *torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=1),
            # What is not asked for has elements where slices are compared.
            torch.unique(x, dim=0), torch.unique(x, dim=1, return_counts=True)[1],
            torch.unique_consecutive(x, dim=0),
            torch.nonzero_static(x > 2, size=4), torch.nonzero_static(x > 2, size=1),
        ]  # fmt: skip

    check(Function(function), (x,))


def test_repeats_and_segments():
    lengths = torch.tensor([2, 0, 3])
    repeats = torch.tensor([1, 3, 0, 1, 1])

    def function(x, lengths, repeats):
        reduced = [
            torch.segment_reduce(x, how, lengths=lengths, axis=0, initial=start, unsafe=True)
            for how in ("sum", "mean", "max", "min", "prod")
            for start in (None, 2.0)
        ]
        rows = x.repeat_interleave(repeats, 0), x.repeat_interleave(repeats, 0, output_size=6)
        return [*reduced, *rows]

    check(Function(function), (torch.randn(5, 2), lengths, repeats))


def test_histograms():
    torch.manual_seed(0)
    x, weight = torch.randn(40, 2), torch.rand(40, 2)

    def function(x, weight):
        edges = torch.tensor([-1.0, 0.0, 0.5, 2.0])
        grid = torch.histogramdd(x, [3, 4], weight=weight[:, 0], density=True)
        return [
            *torch.histogram(x, 5), *torch.histogram(x, 6, range=(-1.0, 1.0), weight=weight),
            *torch.histogram(x, edges, density=True), grid.hist, *grid.bin_edges,
            *torch.histogram(x[:0], 3), torch.histogram(x[:0], 2, density=True).bin_edges,
        ]  # fmt: skip

    check(Function(function), (x, weight))


def test_rows_that_are_too_long_are_shortened():
    table = torch.randn(6, 3)
    indices = torch.tensor([1, 4, 1])

    def function(table):
        return F.embedding(indices, table.clone(), max_norm=1.0)

    check(Function(function), (table,))


def test_images_in_other_sizes():
    x, volume = torch.randn(2, 3, 9, 12), torch.randn(1, 2, 4, 5, 6)
    grid = 2 * torch.rand(1, 3, 2, 4, 3) - 1

    def function(x, volume, grid):
        sampled = [
            F.grid_sample(volume, grid, mode, padding, align_corners=corners)
            for mode in ("bilinear", "nearest")
            for padding in ("zeros", "border", "reflection")
            for corners in (False, True)
        ]
        smooth = [
            F.interpolate(x, size, mode=mode, antialias=True)
            for mode in ("bilinear", "bicubic")
            for size in ((4, 5), (20, 12))
        ]
        return [*sampled, *smooth]

    check(Function(function), (x, volume, grid))


@pytest.mark.parametrize(
    "mode, rank",
    [("nearest", 1), ("nearest-exact", 2), ("linear", 1), ("bilinear", 2), ("bicubic", 2),
     ("trilinear", 3)],
)  # fmt: skip
def test_gradients_of_images_in_other_sizes(mode, rank):
    torch._dynamo.reset()
    smooth = mode not in ("nearest", "nearest-exact")

    def function(x):
        results = [F.interpolate(x, (7, 3, 5)[:rank], mode=mode)]
        if smooth:
            results.append(F.interpolate(x, (7, 3, 5)[:rank], mode=mode, align_corners=True))
        return sum((r * r).sum() for r in results)

    gradients = []
    for run in (torch.compile(function, backend=relax_dynamo()), function):
        torch.manual_seed(0)
        x = torch.randn(2, 2, *(4, 6, 3)[:rank], requires_grad=True)
        run(x).backward()
        gradients.append(x.grad)
    assert_same(*gradients)


def test_windows_at_random_places():
    x, samples = torch.randn(2, 3, 9, 10), torch.rand(2, 3, 2)

    def function(x, samples):
        pool = torch.ops.aten.fractional_max_pool2d
        return [*pool(x, [3, 2], [4, 5], samples), *pool(x[0], [2, 2], [1, 3], samples[:1])]

    check(Function(function), (x, samples))


def test_rows_times_the_matrix_of_their_group():
    ends = torch.tensor([2, 2, 7], dtype=torch.int32)

    def function(x, weight, ends):
        return torch._grouped_mm(x, weight, ends)

    x, weight = torch.randn(7, 16).bfloat16(), torch.randn(3, 16, 8).bfloat16()
    check(Function(function), (x, weight, ends), tolerance=2e-2)


def overlap(a, b):
    low, high = torch.maximum(a[:2], b[:2]), torch.minimum(a[2:], b[2:])
    both = (high - low).clamp(min=0).prod()
    return both / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - both)


def keep_best(boxes, scores, threshold):
    kept = []
    for i in scores.argsort(descending=True, stable=True):
        if all(overlap(boxes[i], boxes[k]) <= threshold for k in kept):
            kept.append(i)
    return torch.stack(kept)


def at(image, y, x):
    """The image between its pixels."""
    h, w = image.shape[1:]
    if not (-1 <= y <= h and -1 <= x <= w):
        return torch.zeros(image.shape[0])
    y, x = min(max(y, 0.0), h - 1.0), min(max(x, 0.0), w - 1.0)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    top = image[:, y0, x0] * (1 - (x - x0)) + image[:, y0, x1] * (x - x0)
    low = image[:, y1, x0] * (1 - (x - x0)) + image[:, y1, x1] * (x - x0)
    return top * (1 - (y - y0)) + low * (y - y0)


def cut_out(images, rois, scale, height, width, ratio, aligned):
    result = torch.empty(len(rois), images.shape[1], height, width)
    offset = 0.5 if aligned else 0.0
    for n, roi in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (v * scale - offset for v in roi[1:])
        least = 0.0 if aligned else 1.0
        dy, dx = max(y2 - y1, least) / height, max(x2 - x1, least) / width
        ny, nx = (ratio if ratio > 0 else max(math.ceil(d), 1) for d in (dy, dx))
        for i in range(height):
            for j in range(width):
                samples = [
                    at(images[int(roi[0])], y1 + (i + (a + 0.5) / ny) * dy,
                       x1 + (j + (b + 0.5) / nx) * dx)
                    for a in range(ny) for b in range(nx)
                ]  # fmt: skip
                result[n, :, i, j] = torch.stack(samples).mean(0)
    return result


@pytest.fixture(scope="module")
def torchvision():
    """Its operators; where the package is not there, declared as it does."""
    try:
        import torchvision

        return torchvision.ops
    except (ImportError, RuntimeError):
        pass
    library = torch.library.Library("torchvision", "FRAGMENT")
    if not hasattr(torch.ops.torchvision, "nms"):
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, "
        "int pooled_width, int sampling_ratio, bool aligned) -> Tensor"
    )
    library.impl("nms", keep_best, "CPU")
    library.impl("roi_align", cut_out, "CPU")

    @torch.library.register_fake("torchvision::nms", lib=library)
    def _(dets, scores, iou_threshold):
        return dets.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)

    @torch.library.register_fake("torchvision::roi_align", lib=library)
    def _(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
        return input.new_empty(rois.shape[0], input.shape[1], pooled_height, pooled_width)

    yield library
    library._destroy()


def test_boxes(torchvision):
    torch.manual_seed(0)
    corners = torch.rand(12, 2) * 6
    boxes = torch.cat([corners, corners + 1 + 4 * torch.rand(12, 2)], 1)
    rois = torch.cat([torch.arange(12.0)[:, None] % 2, boxes], 1)

    def function(boxes, scores, images, rois):
        ops = torch.ops.torchvision
        regions = [
            ops.roi_align(images, rois, scale, 2, 3, ratio, aligned)
            for scale, ratio, aligned in ((1.0, 2, True), (0.5, 0, False), (1.0, 0, True))
        ]
        return [ops.nms(boxes, scores, 0.2), *regions]

    check(Function(function), (boxes, torch.rand(12), torch.randn(2, 3, 8, 9), rois))
