# SPDX-License-Identifier: Apache-2.0
"""Random operations on the paged cache and on the dense one:

python -m tests.relax.serving.paged --operations 10000 --dtype float16
"""

import argparse
import functools

import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache, RopeMode, TIRPagedKVCache

from .dense import DenseCache, Sequence

LAYERS, H_Q, H_KV, D = 2, 4, 2, 16
SCALE = 0.3


def builtin(name, *args):
    return tvm.get_global_func(f"vm.builtin.{name}")(*args)


def shape(*values):
    return tvm.runtime.ShapeTuple(list(values))


class Model(nn.Module):
    """A cache and attention over it, layer by layer."""

    def __init__(self, dtype, rope):
        self.dtype, self.rope = dtype, rope

    def create(self, sequences, total, chunk, page, window):
        return TIRPagedKVCache(
            attn_kind="mha", max_batch_size=sequences, max_total_seq_len=total,
            prefill_chunk_size=chunk, page_size=4, support_sliding_window=window,
            layer_partition=relax.ShapeExpr([0, LAYERS]), num_hidden_layers=LAYERS,
            num_attention_heads=H_Q, num_key_value_heads=H_KV, qk_head_dim=D, v_head_dim=D,
            mla_original_qk_head_dim=0, mla_original_v_head_dim=0,
            rope_mode=RopeMode[self.rope.upper()], rope_scale=1, rope_theta=10000,
            rope_scaling={}, rope_ext_factors=None, rotary_dim=D, enable_disaggregation=False,
            dtype=self.dtype, target="llvm",
        )  # fmt: skip

    def first(self, qkv, cache):
        return cache.attention_with_fused_qkv(0, qkv, H_Q, SCALE)

    def second(self, qkv, cache):
        return cache.attention_with_fused_qkv(1, qkv, H_Q, SCALE)

    def split(self, q, k, v, cache):
        """The same as `first` without storing: over each other, over the past, merged."""
        own, own_sums = cache.self_attention(0, q, k, v, SCALE)
        past, past_sums = cache.cross_attention(0, q, D, SCALE)
        return cache.merge_attn_output_inplace(own, own_sums, past, past_sums)

    def positions(self, n, cache):
        return cache.get_query_positions(n)


@functools.cache
def machine(dtype, rope):
    ints = dict.fromkeys(("sequences", "total", "chunk", "page", "window"), int)
    cache = nn.spec.Object(PagedKVCache)
    qkv = nn.spec.Tensor((1, "n", H_Q + 2 * H_KV, D), dtype)
    q, kv = (nn.spec.Tensor((1, "n", heads, D), dtype) for heads in (H_Q, H_KV))
    spec = {
        "create": ints,
        "first": {"qkv": qkv, "cache": cache},
        "second": {"qkv": qkv, "cache": cache},
        "split": {"q": q, "k": kv, "v": kv, "cache": cache},
        "positions": {"n": int, "cache": cache},
    }
    mod, _ = Model(dtype, rope).export_tvm(spec)
    return relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())


PAGE = 4


def create(dtype="float32", rope="normal", sequences=8, total=160, chunk=32, window=0):
    sizes = (sequences, total, chunk, PAGE, window)
    return machine(dtype, rope)["create"](*(shape(s) for s in sizes))


class Test:
    """One run: every operation on both caches, results and counts compared."""

    def __init__(self, seed, dtype="float32", rope="normal", window=False):
        self.rng = np.random.default_rng(seed)
        self.dtype, self.vm = dtype, machine(dtype, rope)
        self.total, self.window = 160, window
        self.cache = create(dtype, rope, total=self.total, window=int(window))
        self.dense = DenseCache(rope)
        self.next_id = 0
        self.counts = {}

    # ---- operations ------------------------------------------------------------------------------
    def add(self):
        if len(self.dense.sequences) == 8:
            return False
        self.next_id += 1
        builtin("kv_state_add_sequence", self.cache, self.next_id)
        self.dense.sequences[self.next_id] = sequence = Sequence()
        if self.window and self.rng.random() < 0.5:
            size = int(self.rng.integers(3, 12))
            sequence.window, sequence.sinks = size, int(self.rng.integers(0, size))
            args = (self.next_id, size, sequence.sinks)
            builtin("attention_kv_cache_enable_sliding_window_for_seq", self.cache, *args)
        return True

    def pick(self, condition=lambda s: True):
        ids = [i for i, s in self.dense.sequences.items() if condition(s)]
        return int(self.rng.choice(ids)) if ids else None

    def fork(self):
        parent = self.pick(lambda s: not s.window and not s.tree)
        if parent is None or len(self.dense.sequences) == 8:
            return False
        length = len(self.dense.sequences[parent].keys)
        position = int(self.rng.integers(0, length + 1)) if self.rng.random() < 0.5 else -1
        if self.available() == 0:
            return False
        self.next_id += 1
        builtin("kv_state_fork_sequence", self.cache, parent, self.next_id, position)
        count = length if position < 0 else position
        self.dense.sequences[self.next_id] = self.dense.sequences[parent].copy(count)
        return True

    def remove(self):
        which = self.pick()
        if which is None:
            return False
        builtin("kv_state_remove_sequence", self.cache, which)
        del self.dense.sequences[which]
        return True

    def pop(self):
        which = self.pick()
        if which is None:
            return False
        sequence = self.dense.sequences[which]
        n = int(self.rng.integers(0, 4))
        before = self.state()
        limit = len(sequence.keys) - (sequence.sinks if sequence.slid else 0)
        try:
            builtin("kv_state_popn", self.cache, which, n)
        except ValueError as error:  # more than there is, or below a fork
            assert n > limit or "shared" in str(error)
            assert self.state() == before
            return False
        self.dense.pop(sequence, n)
        return True

    def commit(self):
        chosen = [i for i, s in self.dense.sequences.items() if s.tree]
        if not chosen:
            return False
        trees = [self.dense.sequences[i].tree for i in chosen]
        leaves = [int(self.rng.integers(-1, len(tree))) for tree in trees]
        name = "attention_kv_cache_commit_accepted_token_tree_nodes"
        builtin(name, self.cache, shape(*chosen), shape(*leaves))
        for i, leaf in zip(chosen, leaves, strict=True):
            self.dense.commit(self.dense.sequences[i], leaf)
        return True

    def forward(self):
        is_tree = not self.window and self.rng.random() < 0.3
        ids = [i for i, s in self.dense.sequences.items() if is_tree or not s.tree]
        if not ids:
            return False
        self.rng.shuffle(ids)
        ids = ids[: int(self.rng.integers(1, 5))]
        longest = 2 if self.rng.random() < 0.4 else 9
        lengths = [int(self.rng.integers(1, longest)) for _ in ids]
        parents = None
        if is_tree:
            parents = []
            for i, n in zip(ids, lengths, strict=True):
                begin = len(self.dense.sequences[i].tree)
                parents.append([int(self.rng.integers(-1, begin + k)) for k in range(n)])
        before = self.state()
        args = [shape(*ids), shape(*lengths)]
        if is_tree:
            args.append(shape(*sum(parents, [])))
        try:
            builtin("kv_state_begin_forward", self.cache, *args)
        except RuntimeError as error:
            assert "free pages" in str(error) and self.state() == before
            return False
        qkv = self.rng.standard_normal((LAYERS, sum(lengths), H_Q + 2 * H_KV, D))
        qkv = qkv.astype(self.dtype)
        found = [
            self.vm[name](qkv[layer][None], self.cache).numpy()[0]
            for layer, name in enumerate(("first", "second"))
        ]
        positions = self.vm["positions"](shape(sum(lengths)), self.cache).numpy()
        builtin("kv_state_end_forward", self.cache)
        self.check(ids, lengths, parents, qkv.astype("float64"), found, positions)
        return True

    def check(self, ids, lengths, parents, qkv, found, positions):
        tolerance = 2e-2 if self.dtype == "float16" else 2e-4
        begin = 0
        for index, (i, n) in enumerate(zip(ids, lengths, strict=True)):
            sequence, rows = self.dense.sequences[i], qkv[:, begin : begin + n]
            self.dense.slide(sequence)
            k, v = rows[:, :, H_Q : H_Q + H_KV], rows[:, :, H_Q + H_KV :]
            own = parents[index] if parents else None
            expected = self.dense.append(sequence, k.swapaxes(0, 1), v.swapaxes(0, 1), own)
            assert positions[begin : begin + n].tolist() == expected
            for layer in range(LAYERS):
                out = self.dense.attention(sequence, layer, rows[layer, :, :H_Q], expected, SCALE)
                np.testing.assert_allclose(
                    found[layer][begin : begin + n], out, rtol=tolerance, atol=tolerance
                )
            begin += n

    # ---- what is compared ------------------------------------------------------------------------
    def available(self):
        return builtin("attention_kv_cache_get_num_available_pages", self.cache)

    def state(self):
        return self.available(), builtin("attention_kv_cache_get_total_sequence_length", self.cache)

    def step(self):
        names = ["forward"] * 5 + ["add", "fork", "remove", "pop", "commit", "add"]
        name = names[self.rng.integers(len(names))]
        if getattr(self, name)():
            self.counts[name] = self.counts.get(name, 0) + 1
        lengths = sum(len(s.keys) for s in self.dense.sequences.values())
        assert self.state()[1] == lengths

    def run(self, operations):
        for number in range(operations):
            try:
                self.step()
            except Exception as error:
                raise AssertionError(f"operation {number}: {error}") from error
        for i in list(self.dense.sequences):
            builtin("kv_state_remove_sequence", self.cache, i)
        assert self.available() == self.total // PAGE  # no page is lost
        assert builtin("attention_kv_cache_empty", self.cache)
        return self.counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--operations", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", default="float32")
    args = parser.parse_args()
    for rope, window in (("normal", False), ("none", True), ("inline", True)):
        test = Test(args.seed, args.dtype, rope, window)
        print(args.dtype, rope, "window" if window else "", test.run(args.operations))


if __name__ == "__main__":
    main()
