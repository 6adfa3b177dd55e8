# SPDX-License-Identifier: Apache-2.0
"""Operators that few models use, many in one program, against PyTorch."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.export import Dim, export  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from tvm.relax.frontend.torch import from_exported_program  # noqa: E402

from .run import check, compiled  # noqa: E402


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def test_counts_and_ranks():
    rows = torch.tensor([[1.0, 3.0, 3.0, math.nan, 2.0], [5.0, 5.0, math.nan, 4.0, 4.0]])

    def function(x):
        y = rows.nan_to_num(9.0)
        edges = torch.sort(y, -1)[0]
        return [
            torch.histc(x, 7), torch.histc(x, 5, -1.0, 1.0), torch.histc(torch.ones(4), 3),
            torch.searchsorted(edges, y), torch.searchsorted(edges[0], x, right=True),
            torch.searchsorted(edges[0], 3.0), torch.mode(y, -1)[0], torch.mode(y, 0, True)[0],
            *torch.nanmedian(rows, 1), torch.nanmedian(rows), torch.logcumsumexp(x, 0),
            torch.logcumsumexp(100 * x.reshape(4, 5), 1),
        ]  # fmt: skip

    torch.manual_seed(0)
    check(Function(function), (torch.randn(20),))


def test_hashes():
    def function(x):
        integers = (10 * x).to(torch.int32)
        return [
            torch.hash_tensor(x), torch.hash_tensor(x, 1), torch.hash_tensor(x, [0, -1]),
            torch.hash_tensor(x, [0, 2], keepdim=True), torch.hash_tensor(integers, 0),
            torch.hash_tensor(x > 0), torch.hash_tensor(x[0, 0, 0]), torch.hash_tensor(x.half()),
        ]  # fmt: skip

    check(Function(function), (torch.randn(3, 4, 5),))


def test_values_beyond_the_last_edge_are_not_counted():
    edges = (torch.tensor([1.0, 5.0, 4.0]), torch.tensor([0.0, 3.0, 6.0]))
    x = torch.rand(200, 2, generator=torch.Generator().manual_seed(0)) * 8.0
    x[0] = torch.tensor([2.0, 6.0])
    x[1] = math.nan
    check(Function(lambda x: torch.histogramdd(x, edges)[0]), (x,))


def test_elements_at_places():
    index = torch.tensor([0, 2, 0])

    def function(x):
        source = torch.arange(15.0).reshape(3, 5)
        reduced = [
            x.index_reduce(0, index, source, how, include_self=own)
            for how in ("prod", "mean", "amax", "amin")
            for own in (True, False)
        ]
        return [
            *reduced, x[torch.tensor([-1, 1])], x[:, torch.tensor([-2])],
            x.put(torch.tensor([3, -1]), torch.tensor([7.0, 8.0])),
            x.put(torch.tensor([3, 3]), torch.tensor([7.0, 8.0]), accumulate=True),
            torch.as_strided_scatter(x, torch.ones(2, 2), (2, 2), (1, 3), 1),
            torch.diagonal_scatter(x, torch.ones(4), 1),
            torch.diagonal_scatter(x, torch.ones(3), -1),
            x.unfold(1, 3, 2), x[0, 0].unfold(0, 1, 1),
        ]  # fmt: skip

    torch.manual_seed(0)
    check(Function(function), (torch.randn(4, 5),))


def test_numbers():
    def function(x):
        y = x.flip(0)
        mantissa, exponent = torch.frexp(x)
        return [
            torch.dist(x, y), torch.dist(x, y, 1), torch.angle(x), torch.ldexp(x, torch.tensor(3)),
            mantissa, exponent, F.bilinear(x[:4, None], x[4:, None], torch.ones(2, 1, 1)),
        ]  # fmt: skip

    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -3.5, 1024.0]
    check(Function(lambda x: torch.frexp(x)), (torch.tensor(special),))
    check(Function(function), (torch.tensor([-3.5, 0.1, 7.0, 1024.0, 2.0, -1e-3, 0.5, 9.0]),))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_small_values_keep_their_digits(dtype):
    names = ["log1p", "expm1", "erfc"]

    def function(x):
        return [getattr(torch, name)(x) for name in names]

    sizes = torch.logspace(-30, 1.3, 200, dtype=torch.float64)
    ends = torch.tensor([0.0, -0.0, 9.0, 26.0, 90.0, math.inf, -math.inf, math.nan, -1.0])
    x = torch.cat([sizes, -sizes, ends]).to(dtype)
    main = compiled(from_exported_program(export(Function(function), (x,))))
    tolerance = 5e-7 if dtype == torch.float32 else 1e-13
    for name, ours in zip(names, main(x), strict=True):
        expected = getattr(torch, name)(x.double()).to(dtype)
        np.testing.assert_allclose(ours.numpy(), expected, tolerance, 1e-37, err_msg=name)


def test_squeeze_leaves_axes_of_other_sizes():
    module = Function(lambda x: (x.squeeze((0, 1)), x.squeeze(1), x.squeeze((0, -1)), x.squeeze()))
    x = torch.arange(12.0).reshape(1, 4, 3, 1)
    check(module, (x,))
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(module, (x,), dynamic_shapes=({1: batch},))
    for ours, theirs in zip(compiled(from_exported_program(program))(x), module(x), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


def test_zeta_is_defined_from_1_on():
    s, q = torch.tensor([-2.5, 0.0, 0.9, 1.0, 1.5, 3.0]), torch.tensor([[2.5], [0.3], [-2.0]])
    check(Function(lambda s: torch.special.zeta(s, q)), (s,))


def test_windows_that_cover_evenly():
    def function(x):
        planes, indices = F.adaptive_max_pool2d(x, (3, 2), return_indices=True)
        return planes, indices, F.adaptive_max_pool3d(x, (2, 3, 4)), F.adaptive_max_pool1d(x[0], 3)

    torch.manual_seed(0)
    check(Function(function), (torch.randn(2, 3, 7, 5),))


def test_symbolic_lengths():
    def function(x):
        n = x.shape[0]
        spectrum = torch.fft.fft(x, dim=0, norm="ortho")
        padded = F.pad(x, (0, 0, 0, -n % 4), value=2.0)
        return [
            torch.view_as_real(spectrum), torch.fft.rfft(x, dim=0).abs(), padded,
            x.repeat(n, 2),
        ]  # fmt: skip

    torch.manual_seed(0)
    shapes = {"x": {0: Dim.AUTO}}
    check(Function(function), (torch.randn(6, 3),), shapes, [(torch.randn(9, 3),)])


def test_truth_values_and_broadcast_masks():
    def function(x):
        low, high = x > 0, x < 1
        rows = x.reshape(3, 1)
        return [
            low * high, low + high, torch.isfinite(x), torch.isclose(x, x + 1e-9),
            torch.masked_select(rows, x > 0), rows.clamp(max=x), torch.complex(rows, x).real,
            torch.digamma(rows.sigmoid() + 0.1),
        ]  # fmt: skip

    check(Function(function), (torch.tensor([0.5, -1.0, math.inf]),))


def test_sizes_that_only_the_exporter_knows_to_be_equal():
    class Model(nn.Module):
        def forward(self, x):
            padded = F.pad(x, (0, 0, 0, -x.shape[1] % 4))
            chunks = padded.reshape(x.shape[0], -1, 4, x.shape[2])
            whole = chunks.flatten(1, 2)
            torch._check(whole.shape[1] == padded.shape[1])
            return whole + padded

    check(
        Model(),
        (torch.randn(2, 6, 3),),
        dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},),
        others=[(torch.randn(3, 9, 3),)],
    )


def test_tensors_full_of_a_size():
    class Model(nn.Module):
        def forward(self, x):
            n = x.shape[0]
            return torch.full((2,), n - 1), torch.full_like(x, 2 * n), x.clone().fill_(n)

    others = [(torch.randn(5, 2),)]
    check(Model(), (torch.randn(3, 2),), dynamic_shapes=({0: Dim.AUTO},), others=others)


def test_tensors_of_another_size():
    class Model(nn.Module):
        def forward(self, x, y):
            return x.clone().resize_(2, 2), x.clone().resize_as_(y), x.clone().resize_(6)

    check(Model(), (torch.randn(2, 3), torch.randn(3, 2)), run_ep_decomposition=False)
