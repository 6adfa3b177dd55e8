# SPDX-License-Identifier: Apache-2.0
"""Whole models with PyTorch's weights give PyTorch's results, for fixed and for symbolic sizes."""

import pytest
from tvm.relax.frontend import nn

torch = pytest.importorskip("torch")
S = nn.spec.Tensor


def _load(ours, theirs):
    torch.manual_seed(0)
    for module in theirs.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(module.running_mean, 0, 0.1)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
    theirs.eval()
    # PyTorch counts batches beside the statistics; a model for inference has no place for it.
    state = {n: v for n, v in theirs.state_dict().items() if not n.endswith("num_batches_tracked")}
    ours.load_state_dict(state)


def _close(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert (a - b).abs().max() <= 1e-4 * b.abs().max()


@pytest.mark.parametrize("batch", [2, "n"])
def test_resnet18(batch):
    from .twins import ResNet18, TorchResNet18

    ours, theirs = ResNet18(), TorchResNet18()
    _load(ours, theirs)
    compiled = ours.jit({"forward": {"x": S((batch, 3, 64, 64), "float32")}})
    for size in [2] if batch == 2 else [1, 3]:
        x = torch.randn(size, 3, 64, 64)
        with torch.no_grad():
            _close([compiled["forward"](x)], [theirs(x)])


@pytest.mark.parametrize("batch, length", [(2, 16), ("b", "s")])
def test_bert(batch, length):
    from .twins import Bert, TorchBert

    ours, theirs = Bert(), TorchBert()
    _load(ours, theirs)
    tokens = S((batch, length), "int64")
    compiled = ours.jit({"forward": {"ids": tokens, "types": tokens}})
    for shape in [(2, 16)] if batch == 2 else [(1, 7), (3, 33)]:
        ids, types = torch.randint(0, 500, shape), torch.randint(0, 2, shape)
        with torch.no_grad():
            _close(compiled["forward"](ids, types), theirs(ids, types))
