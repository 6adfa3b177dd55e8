# SPDX-License-Identifier: Apache-2.0
"""Frequencies of position embeddings against their definitions, and what turns by them."""

import math

import numpy as np
import pytest
import tvm
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn.llm import position_embedding as pe

D, HEADS, THETA = 16, (4, 2), 10000.0
SMOOTH = {
    "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
LONG = {"max_position_embeddings": 4096, "original_max_position_embeddings": 1024}
YARN = {"original_max_position_embeddings": 64, "factor": 4.0, "beta_fast": 8, "beta_slow": 1}
FACTORS = np.linspace(1, 3, D // 2).astype("float32")
KINDS = {
    "none": {}, "gptj": {"rope_type": "gptj"}, "llama3": {"rope_type": "llama3", **SMOOTH},
    "llama4": {"rope_type": "llama4", **SMOOTH}, "longrope": {"rope_type": "longrope", **LONG},
    "yarn": {"rope_type": "yarn", **YARN},
}  # fmt: skip


def _frequencies(kind):
    """Of each pair, as the papers and the models' own code define them; and a factor."""
    inverse = THETA ** (-np.arange(D // 2) * 2 / D)
    if kind in ("llama3", "llama4"):
        length = 2 * math.pi / inverse
        old = SMOOTH["original_max_position_embeddings"]
        smooth = (old / length - 1.0) / (4.0 - 1.0)
        blended = (1 - smooth) * inverse / 8.0 + smooth * inverse
        slow, fast = length > old / 1.0, length < old / 4.0
        return np.where(slow, inverse / 8.0, np.where(fast, inverse, blended)), 1.0
    if kind == "longrope":
        return inverse / FACTORS, math.sqrt(1 + math.log(4) / math.log(1024))
    if kind == "yarn":

        def place(rotations):
            return D * math.log(64 / (rotations * 2 * math.pi)) / (2 * math.log(THETA))

        low, high = max(math.floor(place(8)), 0), min(math.ceil(place(1)), D - 1)
        ramp = np.clip((np.arange(D // 2) - low) / max(high - low, 0.001), 0, 1)
        return inverse / 4.0 * ramp + inverse * (1 - ramp), 1.0
    return inverse, 1.0


def _turn(x, position, kind, rotary=D):
    """x (heads, D)"""
    frequency, grow = _frequencies(kind)
    cos, sin = np.cos(position * frequency) * grow, np.sin(position * frequency) * grow
    out = x.copy()
    if kind in ("gptj", "llama4"):
        a, b = x[:, 0::2], x[:, 1::2]
        out[:, 0::2], out[:, 1::2] = a * cos - b * sin, b * cos + a * sin
    else:
        a, b = x[:, : D // 2], x[:, D // 2 :]
        out = np.concatenate([a * cos - b * sin, b * cos + a * sin], 1)
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_split_rotary(kind):
    q_heads, kv_heads = HEADS
    func = pe.llama_rope_with_position_map(THETA, 1.0, D, q_heads, kv_heads, "float32", KINDS[kind])
    run = tvm.compile(func, "llvm")
    rng = np.random.default_rng(0)
    positions = np.array([0, 3, 77], "int32")
    qkv = rng.standard_normal((3, q_heads + 2 * kv_heads, D)).astype("float32")
    outs = [tvm.runtime.empty((3, h, D)) for h in (q_heads, kv_heads, kv_heads)]
    extra = [tvm.runtime.tensor(FACTORS)] if kind == "longrope" else []
    given = [tvm.runtime.tensor(qkv), tvm.runtime.tensor(positions), *outs]
    for apply in (1, 0):
        run(*given, apply, *extra)
        q, k, v = np.split(qkv, [q_heads, q_heads + kv_heads], 1)
        if apply:
            q, k = (np.stack([_turn(x, p, kind) for x, p in zip(t, positions, strict=True)])
                    for t in (q, k))  # fmt: skip
        for out, expected in zip(outs, (q, k, v), strict=True):
            np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_llama_rope_of_a_part():
    class Rope(nn.Module):
        def forward(self, qkv, total):
            return pe.llama_rope(qkv, total, THETA, 1.0, *HEADS, {}, rotary_dim=D)

    torch = pytest.importorskip("torch")
    spec = {"qkv": nn.spec.Tensor((1, "n", 8, D), "float32"), "total": int}
    qkv = np.random.default_rng(0).standard_normal((1, 3, 8, D)).astype("float32")
    q, k, v = Rope().jit({"forward": spec})["forward"](torch.from_numpy(qkv), 10)
    for i in range(3):
        np.testing.assert_allclose(
            q[0, i], _turn(qkv[0, i, :4], 7 + i, "none"), rtol=1e-4, atol=1e-5
        )
        np.testing.assert_allclose(
            k[0, i], _turn(qkv[0, i, 4:6], 7 + i, "none"), rtol=1e-4, atol=1e-5
        )
    np.testing.assert_array_equal(v, qkv[:, :, 6:])


def test_errors():
    with pytest.raises(ValueError, match="expected rope_type of .*, got 'spiral'"):
        pe.switch_rope_freq_func({"rope_type": "spiral"})
    with pytest.raises(ValueError, match="expected 'factor' for llama3"):
        pe.switch_rope_freq_func({"rope_type": "llama3"})
