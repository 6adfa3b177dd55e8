# SPDX-License-Identifier: Apache-2.0
"""Networks that PyTorch exports to ONNX give what PyTorch gives, for the batch they were exported
with and for another one."""

import io
import warnings

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from torch.nn import functional as F
from tvm import relax
from tvm.relax.frontend import detach_params
from tvm.relax.frontend.onnx import from_onnx


class Residual(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.a = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.b = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.skip = nn.Conv2d(channels, out, 1, stride)

    def forward(self, x):
        y = self.nb(self.b(F.relu(self.na(self.a(x)))))
        return F.relu(y + self.skip(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.ReLU6(), nn.MaxPool2d(3, 2, 1))
        self.body = nn.Sequential(Residual(8, 8, 1), Residual(8, 16, 2))
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.body(self.stem(x)), 1).flatten(1))


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.expand, self.depth = nn.Conv2d(4, 12, 1), nn.Conv2d(12, 12, 3, 2, 1, groups=12)
        self.squeeze, self.back = nn.Linear(12, 3), nn.Linear(3, 12)
        self.project = nn.Conv2d(12, 6, 1)

    def forward(self, x):
        y = F.hardswish(self.depth(F.hardswish(self.expand(x))))
        gate = F.hardsigmoid(self.back(F.relu(self.squeeze(y.mean((2, 3))))))
        return self.project(y * gate[:, :, None, None])


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, 6, 3, 2, 1), nn.Conv2d(6, 6, 3, padding=1)
        self.up = nn.ConvTranspose2d(6, 4, 2, 2)
        self.norm = nn.GroupNorm(2, 4)

    def forward(self, x):
        y = F.silu(self.middle(F.leaky_relu(self.down(x))))
        wide = self.norm(self.up(y))
        small = F.interpolate(x, scale_factor=0.5, mode="bilinear", align_corners=False)
        big = F.interpolate(small, size=x.shape[2:], mode="nearest")
        return torch.cat([wide, big], 1)


class Encoder(nn.Module):
    """Embeddings, attention with a mask, layer norm, gelu."""

    def __init__(self, causal=False):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 16), nn.Embedding(32, 16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.n1, self.n2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)
        self.causal = causal

    def forward(self, ids):
        batch, length = ids.shape
        x = self.words(ids) + self.places(torch.arange(length))
        q, k, v = self.qkv(self.n1(x)).view(batch, length, 3, 4, 4).permute(2, 0, 3, 1, 4)
        mask = None
        if self.causal:
            mask = torch.ones(length, length, dtype=torch.bool).tril()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, 16))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(10, 4, batch_first=True)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, last = self.gru(y)
        return z, last, h, c


class Indexing(nn.Module):
    """Shapes as values, slices, gathers, scatters."""

    def forward(self, x):
        n, length = x.shape[0], x.shape[1]
        a = x[:, 1 : length // 2].reshape(n, -1)
        values, indices = x.topk(3, dim=1)
        b = torch.gather(x, 1, indices)
        c = torch.zeros_like(x).scatter(1, indices, values)
        d = torch.where(x > 0, x.cumsum(1), x.roll(1, 1))
        e = F.pad(x, (1, 2), value=3.0).flip(1)
        return a, b, c, d, e, x.repeat(1, 2), x.argmax(1), x.std(1)


def f32(*shape):
    return torch.randn(*shape)


def ids(*shape):
    return torch.randint(0, 50, shape)


MODELS = {
    "resnet": (ResNet, f32, (2, 3, 32, 32), (5, 3, 32, 32), {0: "batch"}),
    "mobilenet": (MobileNet, f32, (2, 4, 16, 16), (3, 4, 16, 16), {0: "batch"}),
    "unet": (UNet, f32, (1, 3, 16, 16), (2, 3, 16, 16), {0: "batch"}),
    "encoder": (Encoder, ids, (2, 7), (3, 11), {0: "batch", 1: "length"}),
    "decoder": (lambda: Encoder(causal=True), ids, (2, 7), (3, 11), {0: "batch", 1: "length"}),
    "recurrent": (Recurrent, f32, (2, 6, 6), (3, 6, 6), {0: "batch"}),
    "indexing": (Indexing, f32, (2, 10), (5, 10), {0: "batch"}),
}


def exported(model, example, axes):
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, (example,), buffer, dynamo=False, opset_version=17, input_names=["x"],
            dynamic_axes={"x": axes},
        )  # fmt: skip
    return buffer.getvalue()


def close(got, expected):
    got, expected = got.numpy(), expected.numpy()
    assert got.dtype == expected.dtype
    limit = 1e-4 * max(1e-3, np.abs(expected).max())
    np.testing.assert_allclose(got, expected, rtol=0, atol=limit)


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_pytorch(name):
    make, random, shape, other, axes = MODELS[name]
    torch.manual_seed(0)
    model = make().eval()
    mod = from_onnx(exported(model, random(*shape), axes))
    vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    for size in (shape, other):
        x = random(*size)
        with torch.no_grad():
            expected = model(x)
        results = vm["main"](tvm.runtime.tensor(x.numpy()))
        if isinstance(expected, torch.Tensor):
            results, expected = [results], [expected]
        for got, want in zip(results, expected, strict=True):
            close(got, want)


def test_weights_as_parameters():
    """The tutorials' way: weights are detached, and passed when the model is called."""
    torch.manual_seed(0)
    model, x = ResNet().eval(), f32(2, 3, 32, 32)
    mod = from_onnx(exported(model, x, {0: "batch"}), keep_params_in_input=True)
    mod, params = detach_params(mod)
    assert mod["main"].attrs["num_input"] == 1
    vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    with torch.no_grad():
        close(vm["main"](tvm.runtime.tensor(x.numpy()), *params["main"]), model(x))


def test_compile_takes_a_path(tmp_path):
    torch.manual_seed(0)
    model, x = MobileNet().eval(), f32(2, 4, 16, 16)
    path = tmp_path / "model.onnx"
    path.write_bytes(exported(model, x, {0: "batch"}))
    vm = relax.VirtualMachine(tvm.compile(path, target="llvm"), tvm.cpu())
    with torch.no_grad():
        close(vm["main"](tvm.runtime.tensor(x.numpy())), model(x))
