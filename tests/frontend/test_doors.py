# SPDX-License-Identifier: Apache-2.0
"""A network that comes as an ONNX file ends in the kernels of one that PyTorch hands over."""

import collections
import re

import pytest
import torch
import tvm
from torch import nn
from torch.nn import functional as F
from tvm.relax.frontend.onnx import from_onnx
from tvm.relax.frontend.torch import from_exported_program

from .onnx.test_torch_export import MODELS, exported

LENGTH, SIZE, HEADS = 16, 32, 4


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(SIZE, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


class Shifted(nn.Module):
    """Attention with a bias, of parts of one product, among neighbours of a moved image."""

    def __init__(self):
        super().__init__()
        self.norm, self.parts, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.bias = nn.Parameter(torch.randn(2, 16, 16))

    def forward(self, x):
        y = torch.roll(self.norm(x), (-2, -2), (1, 2))
        y = y.view(2, 2, 4, 2, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 8)
        q, k, v = self.parts(y).view(-1, 16, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        weights = F.softmax(q * 0.5 @ k.transpose(-2, -1) + self.bias, -1)
        y = self.out((weights @ v).transpose(1, 2).reshape(-1, 16, 8))
        y = y.view(2, 2, 2, 4, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(2, 8, 8, 8)
        return x + torch.roll(y, (2, 2), (1, 2))


class ConvNext(nn.Module):
    def __init__(self):
        super().__init__()
        self.around, self.norm = nn.Conv2d(8, 8, 7, padding=3, groups=8), nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 32), nn.Linear(32, 8)
        self.scale = nn.Parameter(torch.rand(8))

    def forward(self, x):
        y = self.norm(self.around(x).permute(0, 2, 3, 1))
        y = self.scale * self.down(F.gelu(self.up(y)))
        return x + y.permute(0, 3, 1, 2)


class Denoiser(nn.Module):
    """A block of a network that takes noise off images."""

    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.GroupNorm(4, 8), nn.GroupNorm(4, 8)
        self.c1, self.c2 = (nn.Conv2d(8, 8, 3, padding=1) for _ in range(2))
        self.time, self.up = nn.Linear(16, 8), nn.ConvTranspose2d(8, 8, 4, 2, 1)

    def forward(self, x):
        y = self.c1(F.silu(self.n1(x)))
        y = y + self.time(x.mean((2, 3)).repeat(1, 2))[:, :, None, None]
        y = self.c2(F.silu(self.n2(y)))
        return self.up(F.interpolate(y + x, scale_factor=2.0, mode="nearest"))


class RmsNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    """Heads side by side; fewer of keys than of queries, and rotary positions, where asked for."""

    def __init__(self, kv_heads=HEADS, rotary=False, causal=False):
        super().__init__()
        self.size, self.kv_heads, self.causal = SIZE // HEADS, kv_heads, causal
        self.q, self.out = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)
        self.k, self.v = (nn.Linear(SIZE, kv_heads * self.size) for _ in range(2))
        angles = torch.arange(LENGTH)[:, None] / 10 ** torch.arange(self.size // 2)
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, 1) if rotary else None)
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, 1) if rotary else None)

    def turned(self, x):
        if self.cos is None:
            return x
        first, second = x.chunk(2, -1)
        return x * self.cos + torch.cat([-second, first], -1) * self.sin

    def forward(self, x):
        def heads(y, count):
            return y.view(*y.shape[:2], count, self.size).transpose(1, 2)

        q = self.turned(heads(self.q(x), HEADS))
        k, v = self.turned(heads(self.k(x), self.kv_heads)), heads(self.v(x), self.kv_heads)
        if self.kv_heads != HEADS:
            k, v = (y.repeat_interleave(HEADS // self.kv_heads, 1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self, norm, activation, gated=False, **options):
        super().__init__()
        self.n1, self.n2, self.attention = norm(SIZE), norm(SIZE), Attention(**options)
        self.up, self.down = nn.Linear(SIZE, 64), nn.Linear(64, SIZE)
        self.gate = nn.Linear(SIZE, 64) if gated else None
        self.activation = activation

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        y = self.n2(x)
        inner = self.activation(self.up(y) if self.gate is None else self.gate(y))
        return x + self.down(inner if self.gate is None else inner * self.up(y))


class Decoder(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.words, self.layers = nn.Embedding(50, SIZE), nn.Sequential(*layers)
        self.head = nn.Linear(SIZE, 50)

    def forward(self, ids):
        return self.head(self.layers(self.words(ids)))


class Vit(nn.Module):
    """Patches of an image, a class among them."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, SIZE, 8, 8)
        self.first = nn.Parameter(torch.randn(1, 1, SIZE))
        self.layer = Layer(nn.LayerNorm, F.gelu)
        self.head = nn.Linear(SIZE, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1)
        return self.head(self.layer(x)[:, 0])


class Masked(nn.Module):
    """Layers that each make the same mask of positions, with activations that are no operator."""

    def __init__(self):
        super().__init__()
        self.words, self.parts = nn.Embedding(50, SIZE), nn.Linear(SIZE, 3 * SIZE)
        self.act = nn.Sequential(nn.ELU(), nn.Linear(SIZE, SIZE), nn.CELU(0.5), nn.Softsign())

    def forward(self, ids):
        x = self.words(ids)
        for _ in range(2):
            parts = self.parts(x).view(*ids.shape, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            mask = (ids > 3)[:, None, None, :]
            y = F.scaled_dot_product_attention(*parts, attn_mask=mask)
            x = x + self.act(y.transpose(1, 2).flatten(2))
        return x


class Summed(nn.Module):
    """Attention within windows of patches, in five dimensions by einsum."""

    def forward(self, x):
        q, k, v = x.view(2, 4, LENGTH, 3, 2, 8).permute(3, 0, 1, 4, 2, 5)
        weights = torch.einsum("BGHID,BGHJD->BGHIJ", q * 0.3, k).softmax(-1)
        return torch.einsum("BGHIJ,BGHJD->BGHID", weights, v)


class Written(nn.Module):
    """Values that are changed in a part of their tensor."""

    def forward(self, x):
        y = x.exp()
        y[:, :, 1:] += x[:, :, :-1]
        y[1:] *= 2
        return torch.cat([y[:, 2:5], y[:, [5, 6, 7]]], 1)


def tanh_gelu(x):
    return F.gelu(x, approximate="tanh")


def gpt():
    return Decoder(*(Layer(nn.LayerNorm, tanh_gelu, causal=True) for _ in range(2)))


def llama():
    return Decoder(Layer(RmsNorm, F.silu, gated=True, kv_heads=2, rotary=True, causal=True))


def bert():
    return Decoder(Layer(nn.LayerNorm, F.gelu))


def ids():
    return torch.randint(0, 50, (2, LENGTH))


# network: what makes it and its input
NETWORKS = {
    "mlp": (Mlp, lambda: torch.randn(3, SIZE)),
    "bert": (bert, ids),
    "gpt": (gpt, ids),
    "llama": (llama, ids),
    "vit": (Vit, lambda: torch.randn(2, 3, 32, 32)),
    "shifted": (Shifted, lambda: torch.randn(2, 8, 8, 8)),
    "convnext": (ConvNext, lambda: torch.randn(2, 8, 16, 16)),
    "masked": (Masked, ids),
    "summed": (Summed, lambda: torch.randn(2, 4, LENGTH, 48)),
    "written": (Written, lambda: torch.randn(2, 8, 16)),
    "denoiser": (Denoiser, lambda: torch.randn(2, 8, 16, 16)),
}
for _name in ("resnet", "mobilenet", "unet", "encoder", "decoder"):
    _make, _random, _shape = MODELS[_name][:3]
    NETWORKS[_name] = (_make, lambda random=_random, shape=_shape: random(*shape))
# What decides how much time a kernel takes, the first that is in its name.
KINDS = ("attention", "conv2d", "matmul", "softmax", "norm", "mean", "max_pool", "pool", "resize")
SAME = {"pool": "mean"}  # that of whole images is their mean


def kernels(mod):
    """The kernels that a call runs, by kind."""
    text = tvm.compile(mod, target="llvm").as_text()
    names = [n for n in re.findall(r"call\s+(\S+)", text) if not n.startswith("vm.")]
    kinds = (next((k for k in KINDS if k in name), "elementwise") for name in names)
    return collections.Counter(SAME.get(kind, kind) for kind in kinds), names


@pytest.mark.parametrize("name", NETWORKS)
def test_both_doors_end_in_the_same_kernels(name):
    make, random = NETWORKS[name]
    torch.manual_seed(0)
    model, x = make().eval(), random()
    with torch.no_grad():
        for parameter in model.parameters():  # exporters drop what is 0
            if not parameter.any():
                parameter.normal_()
    program = torch.export.export(model, (x,))
    got, names = kernels(from_onnx(exported(model, x, {})))
    expected, others = kernels(from_exported_program(program))
    assert got == expected, f"{names}\n{others}"


@pytest.mark.parametrize("door", ["file", "program"])
@pytest.mark.parametrize("name", ["bert", "gpt", "vit"])
def test_attention_is_one_kernel(name, door):
    make, random = NETWORKS[name]
    torch.manual_seed(0)
    model, x = make().eval(), random()
    if door == "file":
        mod = from_onnx(exported(model, x, {}))
    else:
        mod = from_exported_program(torch.export.export(model, (x,)))
    got, names = kernels(mod)
    layers = len(model.layers) if name != "vit" else 1
    # Four products of a layer around it, two behind it, and the last one.
    assert got["attention"] == layers and got["matmul"] == 6 * layers + 1, names
    assert got["softmax"] == 0, names
