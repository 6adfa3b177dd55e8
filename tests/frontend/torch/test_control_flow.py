# SPDX-License-Identifier: Apache-2.0
"""Branches and loops of exported programs."""

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch._higher_order_ops.map import map as torch_map  # noqa: E402
from torch._higher_order_ops.scan import scan  # noqa: E402
from torch._higher_order_ops.while_loop import while_loop  # noqa: E402

from .run import check  # noqa: E402


class Cond(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), (x,))


class While(nn.Module):
    def forward(self, n, x):
        return while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2), (n, x))


class Map(nn.Module):
    def forward(self, xs, y):
        return torch_map(lambda x, y: x * y + 1, xs, y)


class Scan(nn.Module):
    def forward(self, start, xs):
        return scan(lambda total, x: (total + x, total * x), start, xs)


def test_cond_takes_both_branches():
    check(Cond(), (torch.ones(3),), others=[(-torch.ones(3),)])


def test_while_loop_runs_as_often_as_its_data_says():
    check(While(), (torch.tensor(3), torch.ones(2)), others=[(torch.tensor(0), torch.ones(2))])


def test_map():
    check(Map(), (torch.randn(3, 2), torch.randn(2)))


def test_scan():
    check(Scan(), (torch.zeros(2), torch.randn(4, 2)))
