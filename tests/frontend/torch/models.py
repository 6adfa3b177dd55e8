# SPDX-License-Identifier: Apache-2.0
"""Small networks of the usual kinds, with random weights."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class MLP(nn.Module):
    def __init__(self, sizes=(16, 32, 32, 10)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


class BasicBlock(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = None
        if stride != 1 or inputs != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    def __init__(self, width=64, classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.pool = nn.MaxPool2d(3, 2, 1)
        blocks, inputs = [], width
        for i, channels in enumerate((width, 2 * width, 4 * width, 8 * width)):
            blocks += [BasicBlock(inputs, channels, 1 if i == 0 else 2)]
            blocks += [BasicBlock(channels, channels, 1)]
            inputs = channels
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        x = F.adaptive_avg_pool2d(self.blocks(x), 1)
        return self.fc(torch.flatten(x, 1))


class Attention(nn.Module):
    def __init__(self, size, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)

    def forward(self, x, mask=None):
        b, n, d = x.shape
        q, k, v = self.qkv(x).split(d, dim=2)
        q, k, v = (t.view(b, n, self.heads, d // self.heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, size, heads, causal, pre_norm):
        super().__init__()
        self.attention = Attention(size, heads, causal)
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.pre_norm = pre_norm

    def forward(self, x, mask=None):
        if self.pre_norm:
            x = x + self.attention(self.norm1(x), mask)
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    """Token, position and segment embeddings, layers, and a pooled first token."""

    def __init__(self, vocabulary=100, size=32, heads=4, layers=2, length=64):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, size)
        self.positions = nn.Embedding(length, size)
        self.segments = nn.Embedding(2, size)
        self.norm = nn.LayerNorm(size)
        self.layers = nn.ModuleList(Layer(size, heads, False, False) for _ in range(layers))
        self.pooler = nn.Linear(size, size)

    def forward(self, tokens, mask):
        n = tokens.shape[1]
        positions = torch.arange(n, device=tokens.device)
        x = (
            self.tokens(tokens)
            + self.positions(positions)
            + self.segments(torch.zeros_like(tokens))
        )
        x = self.norm(x)
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -1e4
        for layer in self.layers:
            x = layer(x, bias)
        return x, torch.tanh(self.pooler(x[:, 0]))


class GPT2(nn.Module):
    def __init__(self, vocabulary=100, size=32, heads=4, layers=2, length=64):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, size)
        self.positions = nn.Embedding(length, size)
        self.layers = nn.ModuleList(Layer(size, heads, True, True) for _ in range(layers))
        self.norm = nn.LayerNorm(size)
        self.head = nn.Linear(size, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class RMSNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Llama(nn.Module):
    """One layer with rotary positions, grouped heads and a gated network."""

    def __init__(self, vocabulary=64, size=32, heads=4, groups=2):
        super().__init__()
        self.heads, self.groups, self.head_size = heads, groups, size // heads
        self.tokens = nn.Embedding(vocabulary, size)
        self.norm1, self.norm2, self.norm = RMSNorm(size), RMSNorm(size), RMSNorm(size)
        self.q = nn.Linear(size, size, bias=False)
        self.k = nn.Linear(size, groups * self.head_size, bias=False)
        self.v = nn.Linear(size, groups * self.head_size, bias=False)
        self.o = nn.Linear(size, size, bias=False)
        self.gate, self.up = (nn.Linear(size, 2 * size, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * size, size, bias=False)
        self.head = nn.Linear(size, vocabulary, bias=False)

    def rotate(self, x, n):
        half = self.head_size // 2
        frequency = 10000.0 ** (-torch.arange(half, dtype=torch.float32) / half)
        angle = torch.arange(n)[:, None] * frequency
        cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
        turned = torch.cat([-x[..., half:], x[..., :half]], -1)
        return x * cos + turned * sin

    def forward(self, tokens):
        b, n = tokens.shape
        x = self.tokens(tokens)
        y = self.norm1(x)
        q = self.q(y).view(b, n, self.heads, -1).transpose(1, 2)
        k = self.k(y).view(b, n, self.groups, -1).transpose(1, 2)
        v = self.v(y).view(b, n, self.groups, -1).transpose(1, 2)
        q, k = self.rotate(q, n), self.rotate(k, n)
        k, v = (t.repeat_interleave(self.heads // self.groups, dim=1) for t in (k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(self.head_size)
        future = torch.full((n, n), float("-inf")).triu(1)
        y = torch.softmax(scores + future, -1) @ v
        x = x + self.o(y.transpose(1, 2).reshape(b, n, -1))
        y = self.norm2(x)
        x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return self.head(self.norm(x))
