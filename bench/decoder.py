# SPDX-License-Identifier: Apache-2.0
"""A decoder in the style of LLaMA, in nn with a paged cache and in PyTorch with a dense one."""

import dataclasses

import tvm
from tvm import relax, te
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op
from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache, RopeMode, TIRPagedKVCache


@dataclasses.dataclass
class Config:
    layers: int = 4
    hidden: int = 512
    heads: int = 8
    kv_heads: int = 4
    head_dim: int = 64
    inner: int = 1376
    words: int = 1000
    theta: float = 10000.0
    max_sequences: int = 16
    max_total: int = 20480
    chunk: int = 1024


class Layer(nn.Module):
    def __init__(self, c):
        self.c = c
        self.norm0, self.norm1 = (nn.RMSNorm(c.hidden, -1, 1e-5, bias=False) for _ in range(2))
        self.qkv = nn.Linear(c.hidden, (c.heads + 2 * c.kv_heads) * c.head_dim, bias=False)
        self.out = nn.Linear(c.heads * c.head_dim, c.hidden, bias=False)
        self.up = nn.Linear(c.hidden, 2 * c.inner, bias=False)
        self.down = nn.Linear(c.inner, c.hidden, bias=False)

    def forward(self, x, cache, index):
        c, (batch, length, _) = self.c, x.shape
        qkv = self.qkv(self.norm0(x))
        qkv = op.reshape(qkv, [batch, length, c.heads + 2 * c.kv_heads, c.head_dim])
        y = cache.attention_with_fused_qkv(index, qkv, c.heads, c.head_dim**-0.5)
        x = x + self.out(op.reshape(y, [batch, length, c.heads * c.head_dim]))
        gate, up = op.split(self.up(self.norm1(x)), 2, axis=-1)
        return x + self.down(op.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self, config):
        self.c = config
        self.embed = nn.Embedding(config.words, config.hidden)
        self.layers = nn.ModuleList([Layer(config) for _ in range(config.layers)])
        self.norm = nn.RMSNorm(config.hidden, -1, 1e-5, bias=False)
        self.head = nn.Linear(config.hidden, config.words, bias=False)

    def _run(self, ids, cache):
        x = self.embed(ids)
        for index, layer in enumerate(self.layers):
            x = layer(x, cache, index)
        return x

    def prefill(self, ids, cache):
        """The logits behind the last token of one sequence."""
        x = self._run(ids, cache)

        def last(t):
            shape = (t.shape[0], 1, t.shape[2])
            return te.compute(shape, lambda i, _, k: t[i, t.shape[1] - 1, k], "last")

        return self.head(self.norm(op.tensor_expr_op(last, "last", [x])))

    def decode(self, ids, cache):
        """The logits behind one token of each sequence."""
        return self.head(self.norm(self._run(ids, cache)))

    def create_cache(self):
        c = self.c
        return TIRPagedKVCache(
            "mha", c.max_sequences, c.max_total, c.chunk, 16, 0,
            relax.ShapeExpr([0, c.layers]), c.layers, c.heads, c.kv_heads, c.head_dim, c.head_dim,
            0, 0, RopeMode.NORMAL, 1.0, c.theta, {}, None, c.head_dim, False, "float32", "llvm",
        )  # fmt: skip


def spec(length="n", batch="b"):
    """Of the tokens of a prompt, and of the sequences that get one more: numbers, or any."""
    cache = nn.spec.Object(PagedKVCache)
    return {
        "prefill": {"ids": nn.spec.Tensor((1, length), "int64"), "cache": cache},
        "decode": {"ids": nn.spec.Tensor((batch, 1), "int64"), "cache": cache},
        "create_cache": {"$": {"param_mode": "none", "effect_mode": "none"}},
    }


def builtin(name, *args):
    return tvm.get_global_func(f"vm.builtin.{name}")(*args)


class Session:
    """A compiled decoder with its weights, and a cache."""

    def __init__(self, config, state, **sizes):
        model = Decoder(config)
        model.load_state_dict(state)
        mod, params = model.export_tvm(spec(**sizes))
        for name in ("prefill", "decode"):  # as constants, weights are laid out once
            mod = relax.transform.BindParams(name, {n: p.data for n, p in params})(mod)
        self.vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
        self.cache = self.vm["create_cache"]()

    def add(self, sequence):
        builtin("kv_state_add_sequence", self.cache, sequence)

    def step(self, sequences, ids):
        """Logits behind new tokens: of one sequence any number, of several one each."""
        name = "prefill" if len(sequences) == 1 and ids.shape[1] > 1 else "decode"
        lengths = tvm.runtime.ShapeTuple([ids.shape[1]] * len(sequences))
        if not isinstance(ids, tvm.runtime.Tensor):
            ids = tvm.runtime.tensor(ids)
        builtin("kv_state_begin_forward", self.cache, tvm.runtime.ShapeTuple(sequences), lengths)
        out = self.vm[name](ids, self.cache)
        builtin("kv_state_end_forward", self.cache)
        return out


def torch_decoder(config, seed=0):
    """The twin, with the same names of weights: model(ids, cache) where the cache is a list of
    (keys, values) per layer, or None, which it extends."""
    import torch

    F = torch.nn.functional

    class Layer(torch.nn.Module):
        def __init__(self, c):
            super().__init__()
            linear = lambda i, o: torch.nn.Linear(i, o, bias=False)
            self.norm0, self.norm1 = (torch.nn.RMSNorm(c.hidden, 1e-5) for _ in range(2))
            self.qkv = linear(c.hidden, (c.heads + 2 * c.kv_heads) * c.head_dim)
            self.out = linear(c.heads * c.head_dim, c.hidden)
            self.up, self.down = linear(c.hidden, 2 * c.inner), linear(c.inner, c.hidden)

        def forward(self, x, past, angles):
            c = config
            qkv = self.qkv(self.norm0(x)).view(*x.shape[:2], -1, c.head_dim).transpose(1, 2)
            q, k, v = qkv.split([c.heads, c.kv_heads, c.kv_heads], 1)
            q, k = turn(q, angles), turn(k, angles)
            if past is not None:
                k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
            is_causal = q.shape[2] > 1
            y = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=True)
            x = x + self.out(y.transpose(1, 2).reshape(*x.shape[:2], -1))
            gate, up = self.up(self.norm1(x)).chunk(2, -1)
            return x + self.down(F.silu(gate) * up), (k, v)

    def turn(x, angles):
        a, b = x.chunk(2, -1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    class Model(torch.nn.Module):
        def __init__(self, c):
            super().__init__()
            self.embed = torch.nn.Embedding(c.words, c.hidden)
            self.layers = torch.nn.ModuleList([Layer(c) for _ in range(c.layers)])
            self.norm = torch.nn.RMSNorm(c.hidden, 1e-5)
            self.head = torch.nn.Linear(c.hidden, c.words, bias=False)
            half = torch.arange(c.head_dim // 2)
            self.rates = c.theta ** (-2.0 * half / c.head_dim)

        @torch.no_grad()
        def forward(self, ids, cache=None):
            before = 0 if cache is None else cache[0][0].shape[2]
            angles = torch.arange(before, before + ids.shape[1])[:, None] * self.rates
            x, new = self.embed(ids), []
            for index, layer in enumerate(self.layers):
                x, kv = layer(x, None if cache is None else cache[index], angles)
                new.append(kv)
            return self.head(self.norm(x[:, -1:])), new

    torch.manual_seed(seed)
    return Model(config).eval()
