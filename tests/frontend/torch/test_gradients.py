# SPDX-License-Identifier: Apache-2.0
"""Gradients that PyTorch's differentiation leaves as operators, through torch.compile."""

import functools
import warnings

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402
from tvm.relax.frontend.torch import relax_dynamo  # noqa: E402

from .run import assert_same  # noqa: E402


def check(function, *shapes):
    """The gradients of a sum of all results in all inputs, with nothing left to PyTorch."""

    def total(*inputs):
        return sum((r * r.detach().cos()).sum() for r in function(*inputs))

    gradients = []
    torch._dynamo.reset()
    for run in (torch.compile(total, backend=relax_dynamo()), total):
        torch.manual_seed(0)
        inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*PyTorch runs")
            run(*inputs).backward()
        gradients.append([x.grad for x in inputs])
    assert_same(*gradients, 1e-3)


def test_attention():
    mask = torch.randn(4, 5)

    def function(q, k, v):
        attend = F.scaled_dot_product_attention
        return [
            attend(q, k, v), attend(q, k, v, attn_mask=mask), attend(q, k, v, scale=0.3),
            attend(q, k, v, attn_mask=mask > 0),
            attend(q, k[:, :, :4], v[:, :, :4], is_causal=True),
        ]  # fmt: skip

    check(function, (2, 2, 4, 8), (2, 2, 5, 8), (2, 2, 5, 8))


def test_distances():
    def function(a, b):
        pairs = [torch.cdist(a, b, p) for p in (0.0, 1.0, 1.5, 2.0, 3.0, float("inf"))]
        return pairs + [F.pdist(a, p) for p in (1.0, 2.0, 3.0)]

    check(function, (4, 3), (5, 3))


def test_distances_of_nothing():
    check(lambda a, b: [torch.cdist(a, b), b.sum()[None]], (0, 4, 5), (3, 5))


def test_soft_margins():
    target = torch.tensor([[-1.0], [1.2], [-1.1]])

    def function(x):  # the gradient is small where the margin is large
        margin = (x.square() + 10.0) * target
        return [1e6 * F.soft_margin_loss(margin, target, reduction=how) for how in ("mean", "sum")]

    check(function, (3, 4))


def test_cross_entropy_of_a_linear_layer():
    pytest.importorskip("torch.nn.modules.linear_cross_entropy")  # declares the operators
    operators = torch.ops.torch_nn
    classes, weight = torch.tensor([0, 3, -100]), torch.tensor([0.5, 1.0, 2.0, 3.0])

    def function(x, linear, bias):
        given, sums = (x, linear, classes, bias, weight), ("compact", torch.float32)
        scalars = [
            operators._linear_cross_entropy_batch_chunked(
                *given, how, -100, 0.0, 2, *sums, True, True, True, True
            )[0][None]
            for how in ("mean", "sum")
        ]
        rows = operators._linear_cross_entropy_batch_chunked_no_reduction(*given, -100, 2, *sums)
        return [*scalars, rows]

    check(function, (3, 5), (4, 5), (4,))


def test_windows():
    def function(x, volume):
        return [
            F.max_pool2d(x, 3, 2, 1), F.adaptive_max_pool2d(x, (3, 2)), F.max_pool3d(volume, 2),
            F.adaptive_max_pool3d(volume, (2, 3, 1)), F.adaptive_avg_pool3d(volume, (2, 3, 1)),
            F.adaptive_avg_pool2d(x, (3, 2)), F.avg_pool3d(volume, 2),
            F.avg_pool3d(volume, 3, 2, 1, ceil_mode=True),
            F.avg_pool3d(volume, 3, 2, 1, count_include_pad=False),
            F.avg_pool3d(volume, 2, divisor_override=-3),
            F.avg_pool2d(x, (4, 3), 2, 1, ceil_mode=True, count_include_pad=False),
            F.avg_pool2d(x, 4, 3, 2, ceil_mode=True, divisor_override=2),
        ]  # fmt: skip

    check(function, (2, 3, 7, 8), (1, 2, 4, 6, 5))


def test_repeated_and_taken_elements():
    mask = torch.tensor([[True, False, True], [False, True, True]])

    def function(row, image, volume, source):
        return [
            F.pad(row, (2, 1), mode="replicate"), F.pad(image, (2, 1, 0, 3), mode="replicate"),
            F.pad(volume, (1, 1, 2, 0, 0, 1), mode="replicate"),
            torch.zeros(2, 3).masked_scatter(mask, source),
        ]  # fmt: skip

    check(function, (2, 4), (1, 2, 3, 4), (1, 1, 2, 3, 2), (2, 4))


def test_points_of_a_grid():
    def function(image, grid, volume, places):
        every = [
            F.grid_sample(image, grid * 1.5, mode, padding, align_corners=align)
            for mode in ("bilinear", "bicubic", "nearest")
            for padding, align in (("zeros", True), ("border", False), ("reflection", False))
        ]
        padded = F.grid_sample(volume, places, padding_mode="reflection", align_corners=True)
        return [*every, padded, F.grid_sample(volume, places, align_corners=False)]

    check(function, (2, 3, 4, 5), (2, 3, 2, 2), (1, 2, 3, 4, 3), (1, 2, 2, 2, 3))


def test_segments():
    lengths, offsets = torch.tensor([2, 0, 3]), torch.tensor([0, 1, 5])

    def function(x):
        kinds = ("sum", "mean", "max", "min", "prod")
        reduced = [
            torch.segment_reduce(x, kind, lengths=lengths, axis=0, initial=2.0, unsafe=True)
            for kind in kinds
        ]
        return reduced + [torch.segment_reduce(x, kind, offsets=offsets) for kind in kinds]

    check(function, (5, 2))


def test_bags_of_rows():
    indices, offsets = torch.tensor([1, 3, 3, 0, 2]), torch.tensor([0, 2, 2])

    def function(table, weights):
        bag = functools.partial(F.embedding_bag, indices, table, offsets)
        kinds = [bag(mode=mode) for mode in ("sum", "mean", "max")]
        weighted = bag(mode="sum", per_sample_weights=weights)
        return [*kinds, weighted, bag(mode="mean", padding_idx=3), bag(scale_grad_by_freq=True)]

    check(function, (4, 3), (5,))


def test_transposed_convolutions_of_a_larger_size():
    def function(x, weight):
        options = {"dilation": 3, "output_padding": 2}
        return [F.conv_transpose2d(x, weight, **options), F.conv_transpose2d(x, weight, stride=2)]

    check(function, (1, 2, 4, 5), (2, 3, 2, 3))


def test_spectra_and_factors():
    def function(x):
        square = x @ x.mT + torch.eye(4)
        spectrum, complete = torch.fft.rfft2(x), torch.fft.ifft(torch.fft.ihfft(x), n=7)
        return [
            spectrum.real, spectrum.abs(), complete.imag, torch.fft.hfft(spectrum),
            torch.logdet(square + 0.1 * x[:, :4]), torch.linalg.det(square.mT + x[:, :4].exp()),
            torch.linalg.inv(square), torch.linalg.cholesky(square),
            torch.linalg.eigvals(square + 0.1 * x[:, :4]).abs().sum(),
        ]  # fmt: skip

    check(function, (4, 5))


def test_rows_without_elements():
    def function(x, empty):
        none = torch.empty(2, 0, dtype=torch.int64)
        return [F.group_norm(empty, 2), x.gather(0, none[0]), x.sum()]

    check(function, (3,), (0, 4, 3))
