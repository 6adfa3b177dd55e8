# SPDX-License-Identifier: Apache-2.0
"""Quantised programs (PT2E): integers with scales and zero points, against PyTorch."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.fx._decomposed")
from torch import nn  # noqa: E402
from torch.export import export  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from tvm.relax.frontend.torch import from_exported_program  # noqa: E402

from .run import assert_same, compiled  # noqa: E402

Q = torch.ops.quantized_decomposed


class Quantised(nn.Module):
    """A linear layer as quantisation leaves it: weights per channel, activations per tensor, one
    activation by what it holds."""

    def __init__(self):
        super().__init__()
        weight = torch.randn(6, 8)
        scales = weight.abs().amax(1) / 127
        self.register_buffer("scales", scales)
        self.register_buffer("zeros", torch.zeros(6, dtype=torch.int64))
        levels = (weight / scales[:, None]).round().clamp(-127, 127)
        self.register_buffer("weight", levels.to(torch.int8))

    def forward(self, x):
        x = Q.quantize_per_tensor(x, 0.05, 3, 0, 255, torch.uint8)
        x = Q.dequantize_per_tensor(x, 0.05, 3, 0, 255, torch.uint8)
        weight = Q.dequantize_per_channel(
            self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8
        )
        y = F.linear(x, weight)
        scale, zero = Q.choose_qparams.tensor(y, -128, 127, 1e-6, torch.int8)
        levels = Q.quantize_per_tensor.tensor(y, scale, zero, -128, 127, torch.int8)
        z = Q.dequantize_per_tensor.tensor(levels, scale, zero, -128, 127, torch.int8)
        narrow = Q.quantize_per_channel(
            y, torch.full((6,), 0.1), torch.ones(6, dtype=torch.int64), 1, -7, 7, torch.int8
        )
        own, middle = Q.choose_qparams_symmetric.tensor(y, -127, 127, 1e-6, torch.int8)
        return levels, z, narrow, scale, zero, own, middle


@pytest.mark.parametrize("decomposed", [True, False])
def test_a_quantised_layer(decomposed):
    torch.manual_seed(0)
    model, x = Quantised(), torch.randn(4, 8)
    program = export(model, (x,))
    ours = compiled(from_exported_program(program, run_ep_decomposition=decomposed))(x)
    theirs = model(x)
    for a, b in zip(ours, theirs, strict=True):
        if b.dtype == torch.int8:  # a tie may be rounded the other way
            assert (torch.from_dlpack(a).int() - b.int()).abs().max() <= 1
        else:
            assert_same(a, b, 1e-2)
