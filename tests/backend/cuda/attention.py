# SPDX-License-Identifier: Apache-2.0
"""Attention for tests of its kernel."""

import numpy as np
from tvm import te, topi


def attention(batch, rows, heads, size, keys=None, key_heads=None, out=None, dtype="float16",
              bias=None, causal=None, window=None, scale=None):  # fmt: skip
    keys = rows if keys is None else keys
    key_heads, out = key_heads or heads, out or size
    Q = te.placeholder((batch, rows, heads, size), dtype, name="Q")
    K = te.placeholder((batch, keys, key_heads, size), dtype, name="K")
    V = te.placeholder((batch, keys, key_heads, out), dtype, name="V")
    B = te.placeholder(bias, dtype, name="B") if bias else None
    O = topi.nn.attention(Q, K, V, B, scale, causal, window)
    return te.create_prim_func([Q, K, V, *([B] if bias else []), O])


def expected(q, k, v, bias=None, causal=None, window=None, scale=None):
    """The same in float64; 0 for a query that sees no key."""
    q, k, v = (x.astype("float64").transpose(0, 2, 1, 3) for x in (q, k, v))
    k, v = (x.repeat(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or 1 / np.sqrt(q.shape[-1]))
    if bias is not None:
        scores = scores + bias.astype("float64")
    rows, keys = scores.shape[-2:]
    last = np.arange(rows)[:, None] + (keys - rows if causal == "BottomRight" else 0)
    key = np.arange(keys)[None]
    if causal:
        scores = np.where(key <= last, scores, -np.inf)
    if window:
        scores = np.where(key > last - window, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
    weights = np.where((scores == -np.inf).all(-1, keepdims=True), 0, weights)
    return (weights @ v).transpose(0, 2, 1, 3)
