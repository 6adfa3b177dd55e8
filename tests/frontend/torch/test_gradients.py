# SPDX-License-Identifier: Apache-2.0
"""Gradients that PyTorch's differentiation leaves as operators, through torch.compile."""

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


def test_windows():
    def function(x, volume):
        return [
            F.max_pool2d(x, 3, 2, 1), F.adaptive_max_pool2d(x, (3, 2)), F.max_pool3d(volume, 2),
            F.adaptive_max_pool3d(volume, (2, 3, 1)), F.adaptive_avg_pool3d(volume, (2, 3, 1)),
            F.adaptive_avg_pool2d(x, (3, 2)), F.avg_pool3d(volume, 2),
            F.avg_pool3d(volume, 3, 2, 1, ceil_mode=True),
            F.avg_pool3d(volume, 3, 2, 1, count_include_pad=False),
            F.avg_pool3d(volume, 2, divisor_override=3),
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
