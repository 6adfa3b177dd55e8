# SPDX-License-Identifier: Apache-2.0
"""Models written twice, in PyTorch and in nn, with the same names of weights."""

import torch
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op

T = torch.nn


# ---- ResNet-18 -----------------------------------------------------------------------------------
class BatchNorm(nn.Module):
    """In inference: by the statistics of training."""

    def __init__(self, channels):
        self.weight, self.bias = nn.Parameter((channels,)), nn.Parameter((channels,))
        self.running_mean, self.running_var = nn.Parameter((channels,)), nn.Parameter((channels,))

    def forward(self, x):
        scale = self.weight / op.sqrt(self.running_var + 1e-5)
        shift = self.bias - self.running_mean * scale
        return x * scale.reshape(-1, 1, 1) + shift.reshape(-1, 1, 1)


def _max_pool(x, kernel, stride, padding):
    from tvm import relax

    return nn.wrap_nested(
        relax.op.nn.max_pool2d(x._expr, [kernel] * 2, [stride] * 2, [padding] * 2), "max_pool2d"
    )


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        self.conv1 = nn.Conv2D(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = BatchNorm(outputs)
        self.conv2 = nn.Conv2D(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = BatchNorm(outputs)
        self.downsample = None
        if stride != 1:
            conv = nn.Conv2D(inputs, outputs, 1, stride, bias=False)
            self.downsample = nn.ModuleList([conv, BatchNorm(outputs)])

    def forward(self, x):
        y = self.bn2(self.conv2(op.relu(self.bn1(self.conv1(x)))))
        return op.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    def __init__(self):
        self.conv1, self.bn1 = nn.Conv2D(3, 64, 7, 2, 3, bias=False), BatchNorm(64)
        self.stages = nn.ModuleList(
            [Block(64 << max(s - (b == 0), 0), 64 << s, 2 if s and b == 0 else 1)
             for s in range(4) for b in range(2)]
        )  # fmt: skip
        self.fc = nn.Linear(512, 1000)

    def forward(self, x):
        x = _max_pool(op.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.stages(x)
        return self.fc(op.sum(x, axis=[2, 3]) / float(x.shape[2] * x.shape[3]))


class TorchBlock(T.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = T.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = T.BatchNorm2d(outputs)
        self.conv2 = T.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = T.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1:
            conv = T.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.downsample = T.Sequential(conv, T.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class TorchResNet18(T.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = T.Conv2d(3, 64, 7, 2, 3, bias=False), T.BatchNorm2d(64)
        self.stages = T.Sequential(
            *(TorchBlock(64 << max(s - (b == 0), 0), 64 << s, 2 if s and b == 0 else 1)
              for s in range(4) for b in range(2))
        )  # fmt: skip
        self.fc = T.Linear(512, 1000)

    def forward(self, x):
        x = T.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(self.stages(x).mean((2, 3)))


# ---- BERT: embeddings, layers of PyTorch's TransformerEncoder, a pooler --------------------------
class SelfAttention(nn.Module):
    def __init__(self, hidden, heads):
        self.heads = heads
        self.in_proj_weight = nn.Parameter((3 * hidden, hidden))
        self.in_proj_bias = nn.Parameter((3 * hidden,))
        self.out_proj = nn.Linear(hidden, hidden)

    def forward(self, x):
        batch, length, hidden = x.shape
        qkv = op.matmul(x, op.permute_dims(self.in_proj_weight)) + self.in_proj_bias
        parts = [
            op.reshape(part, [batch, length, self.heads, hidden // self.heads])
            for part in op.split(qkv, 3, axis=-1)
        ]
        y = op.scaled_dot_product_attention(*parts)
        return self.out_proj(op.reshape(y, [batch, length, hidden]))


class EncoderLayer(nn.Module):
    def __init__(self, hidden, heads):
        self.self_attn = SelfAttention(hidden, heads)
        self.linear1, self.linear2 = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)

    def forward(self, x):
        x = self.norm1(x + self.self_attn(x))
        return self.norm2(x + self.linear2(op.gelu(self.linear1(x))))


class Bert(nn.Module):
    def __init__(self, hidden=128, heads=4, layers=2, words=500, positions=64):
        self.words, self.types = nn.Embedding(words, hidden), nn.Embedding(2, hidden)
        self.positions, self.norm = nn.Embedding(positions, hidden), nn.LayerNorm(hidden)
        self.layers = nn.ModuleList([EncoderLayer(hidden, heads) for _ in range(layers)])
        self.pooler = nn.Linear(hidden, hidden)

    def forward(self, ids, types):
        positions = op.arange(0, ids.shape[1], dtype="int64")
        x = self.norm(self.words(ids) + self.types(types) + self.positions(positions))
        x = self.layers(x)
        first = op.take(x, nn.Tensor.from_const(0), axis=1)
        return x, op.tanh(self.pooler(first))


class TorchBert(T.Module):
    def __init__(self, hidden=128, heads=4, layers=2, words=500, positions=64):
        super().__init__()
        self.words, self.types = T.Embedding(words, hidden), T.Embedding(2, hidden)
        self.positions, self.norm = T.Embedding(positions, hidden), T.LayerNorm(hidden)
        layer = [
            T.TransformerEncoderLayer(hidden, heads, 4 * hidden, 0.0, "gelu", batch_first=True)
            for _ in range(layers)
        ]
        self.layers = T.Sequential(*layer)
        self.pooler = T.Linear(hidden, hidden)

    def forward(self, ids, types):
        x = self.words(ids) + self.types(types) + self.positions(torch.arange(ids.shape[1]))
        x = self.layers(self.norm(x))
        return x, torch.tanh(self.pooler(x[:, 0]))
