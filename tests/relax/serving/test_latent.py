# SPDX-License-Identifier: Apache-2.0
"""Latent attention, with projections absorbed over the cache, gives what PyTorch gives."""

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op
from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache, RopeMode, TIRPagedKVCache

from .paged import builtin, shape

torch = pytest.importorskip("torch")
HEADS, PLAIN, TURNED, VALUE, LATENT, HIDDEN = 4, 16, 8, 16, 32, 64
SCALE = (PLAIN + TURNED) ** -0.5


class Attention(nn.Module):
    def __init__(self):
        self.query = nn.Linear(HIDDEN, HEADS * (PLAIN + TURNED), bias=False)
        self.latent = nn.Linear(HIDDEN, LATENT + TURNED, bias=False)
        self.norm = nn.RMSNorm(LATENT, -1, 1e-6, bias=False)
        self.to_key, self.to_value = (
            nn.Parameter((HEADS, LATENT, n)) for n in (PLAIN, VALUE)
        )  # fmt: skip
        self.out = nn.Linear(HEADS * VALUE, HIDDEN, bias=False)

    def project(self, x, cache):
        """(query, what its parts are, value and the rest of the key), which are appended."""
        batch, length, _ = x.shape
        query = op.reshape(self.query(x), (batch, length, HEADS, PLAIN + TURNED))
        value, rest = op.split(self.latent(x), [LATENT], axis=-1)
        value = self.norm(value)
        cache = cache.append_mla_kv(0, op.concat([value, rest], dim=-1))
        return query, op.split(query, [PLAIN], axis=-1), value, rest, cache

    def by_head(self, x, weight):
        """(b, s, heads, n) times (heads, n, m)"""
        batch, length, _, n = x.shape
        rows = op.permute_dims(op.reshape(x, (batch * length, HEADS, n)), (1, 0, 2))
        rows = op.permute_dims(op.matmul(rows, weight), (1, 0, 2))
        return op.reshape(rows, (batch, length, HEADS, rows.shape[-1]))

    def over_cache(self, parts, cache):
        plain = self.by_head(parts[0], op.permute_dims(self.to_key, (0, 2, 1)))
        query = op.concat([plain, parts[1]], dim=-1)
        found, sums = cache.cross_attention(0, query, LATENT, SCALE)
        return self.by_head(found, self.to_value), sums

    def project_out(self, found):
        batch, length, _, _ = found.shape
        return self.out(op.reshape(found, (batch, length, HEADS * VALUE)))

    def prefill(self, x, cache):
        query, parts, value, rest, cache = self.project(x, cache)
        batch, length, _ = x.shape
        spread = lambda t: op.broadcast_to(
            op.unsqueeze(t, 2), (batch, length, HEADS, t.shape[-1])
        )  # fmt: skip
        key = op.concat([self.by_head(spread(value), self.to_key), spread(rest)], dim=-1)
        own = cache.self_attention(
            0, query, key, self.by_head(spread(value), self.to_value), SCALE
        )  # fmt: skip
        found, _ = cache.merge_attn_output_inplace(*own, *self.over_cache(parts, cache))
        return self.project_out(found)

    def decode(self, x, cache):
        _, parts, _, _, cache = self.project(x, cache)
        return self.project_out(self.over_cache(parts, cache)[0])

    def create(self):
        return TIRPagedKVCache(
            "mla", 4, 256, 64, 16, 0, relax.ShapeExpr([0, 1]), 1, HEADS, HEADS, LATENT + TURNED,
            LATENT, PLAIN + TURNED, VALUE, RopeMode.NONE, 1, 10000, {}, relax.PrimValue(0), TURNED,
            False, "float32", "llvm",
        )  # fmt: skip


def _expected(w, x):
    """Of all tokens, as if there were no cache."""
    x, n = torch.tensor(x).double(), len(x)
    query = (x @ w["query.weight"].T).view(n, HEADS, PLAIN + TURNED)
    value, rest = (x @ w["latent.weight"].T).split([LATENT, TURNED], -1)
    value = torch.nn.functional.rms_norm(value, (LATENT,), w["norm.weight"], 1e-6)
    key = torch.einsum("nl,hld->nhd", value, w["to_key"])
    key = torch.cat([key, rest[:, None].expand(n, HEADS, TURNED)], -1)
    value = torch.einsum("nl,hld->nhd", value, w["to_value"])
    parts = (t.transpose(0, 1)[None] for t in (query, key, value))
    found = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
    return (found[0].transpose(0, 1).reshape(n, -1) @ w["out.weight"].T).numpy()


def _close(found, expected):
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


def test_as_torch():
    cache_spec, plain = nn.spec.Object(PagedKVCache), {"param_mode": "none", "effect_mode": "none"}
    mod, params = Attention().export_tvm({
        "prefill": {"x": nn.spec.Tensor((1, "n", HIDDEN), "float32"), "cache": cache_spec},
        "decode": {"x": nn.spec.Tensor(("b", 1, HIDDEN), "float32"), "cache": cache_spec},
        "create": {"$": plain},
    })  # fmt: skip
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    rng = np.random.default_rng(0)
    weights = {
        name: (0.2 * rng.standard_normal([int(d) for d in p.shape])).astype("float32")
        for name, p in params
    }
    wide = {name: torch.tensor(w).double() for name, w in weights.items()}
    cache, tokens = vm["create"](), {}

    def step(name, ids, lengths, x):
        builtin("kv_state_begin_forward", cache, shape(*ids), shape(*lengths))
        out = vm[name](x, cache, *weights.values()).numpy()
        builtin("kv_state_end_forward", cache)
        return out

    for i, length in enumerate((20, 7)):
        builtin("kv_state_add_sequence", cache, i)
        tokens[i] = rng.standard_normal((length, HIDDEN)).astype("float32")
        chunks = np.array_split(tokens[i], 2)  # the second one looks back
        found = [step("prefill", [i], [len(chunk)], chunk[None])[0] for chunk in chunks]
        _close(np.concatenate(found), _expected(wide, tokens[i]))
    builtin("kv_state_fork_sequence", cache, 0, 2, 18)
    tokens[2] = tokens[0][:18]
    for _ in range(3):
        new = rng.standard_normal((3, 1, HIDDEN)).astype("float32")
        found = step("decode", [0, 1, 2], [1, 1, 1], new)
        for i in range(3):
            tokens[i] = np.concatenate([tokens[i], new[i]])
            _close(found[i, 0], _expected(wide, tokens[i])[-1])
