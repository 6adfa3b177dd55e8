# SPDX-License-Identifier: Apache-2.0
"""Networks of the usual kinds give PyTorch's results, also with symbolic batch and length."""

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

from .models import GPT2, MLP, Bert, Llama, ResNet18  # noqa: E402
from .run import check  # noqa: E402


@pytest.fixture(autouse=True)
def same_weights_every_time():
    torch.manual_seed(0)


@pytest.fixture(params=[True, False], ids=["decomposed", "as exported"])
def decomposed(request):
    return request.param


def tokens(batch, length):
    return torch.randint(0, 60, (batch, length))


def test_mlp(decomposed):
    batch = Dim("batch", min=1, max=64)
    x, others = torch.randn(2, 16), [(torch.randn(n, 16),) for n in (1, 5)]
    check(MLP(), (x,), {"x": {0: batch}}, others, run_ep_decomposition=decomposed)


def test_resnet18(decomposed):
    check(ResNet18(8, 10), (torch.randn(1, 3, 64, 64),), run_ep_decomposition=decomposed)


def test_bert_with_symbolic_batch_and_length(decomposed):
    batch, length = Dim("batch", min=1, max=16), Dim("length", min=2, max=64)
    shapes = {"tokens": {0: batch, 1: length}, "mask": {0: batch, 1: length}}
    others = [(tokens(3, 7), torch.ones(3, 7))]
    args = (tokens(2, 8), torch.ones(2, 8))
    check(Bert(), args, shapes, others, run_ep_decomposition=decomposed)


def test_gpt2_with_symbolic_length(decomposed):
    shapes = {"tokens": {1: Dim("length", min=2, max=64)}}
    check(GPT2(), (tokens(2, 8),), shapes, [(tokens(2, 5),)], run_ep_decomposition=decomposed)


def test_llama(decomposed):
    check(Llama(), (tokens(2, 8),), run_ep_decomposition=decomposed)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent(kind, bidirectional, decomposed):
    model = kind(4, 6, num_layers=2, batch_first=True, bidirectional=bidirectional)
    check(model, (torch.randn(2, 3, 4),), run_ep_decomposition=decomposed)
