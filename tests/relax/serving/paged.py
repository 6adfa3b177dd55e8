# SPDX-License-Identifier: Apache-2.0
"""Random operations on the paged cache and on the dense one:

python -m tests.relax.serving.paged --operations 10000 --dtype float16
"""

import argparse
import concurrent.futures
import functools
import time

import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache, RopeMode, TIRPagedKVCache

from .dense import DenseCache, Sequence

LAYERS, H_Q, H_KV, D = 2, 4, 2, 16
D_LATENT = 8  # of the D elements of a latent row, the value
SCALE = 0.3
KINDS = {"heads": "mha", "sliding": ["mha", "mha_sliding"], "latent": "mla"}


def builtin(name, *args):
    return tvm.get_global_func(f"vm.builtin.{name}")(*args)


def shape(*values):
    return tvm.runtime.ShapeTuple(list(values))


class Model(nn.Module):
    """A cache and attention over it, layer by layer."""

    def __init__(self, dtype, rope, kind):
        self.dtype, self.rope, self.kind = dtype, rope, kind

    def create(self, sequences, total, chunk, page, window):
        return TIRPagedKVCache(
            attn_kind=KINDS[self.kind], max_batch_size=sequences, max_total_seq_len=total,
            prefill_chunk_size=chunk, page_size=4, support_sliding_window=window,
            layer_partition=relax.ShapeExpr([0, LAYERS]), num_hidden_layers=LAYERS,
            num_attention_heads=H_Q, num_key_value_heads=H_KV, qk_head_dim=D,
            v_head_dim=D_LATENT if self.kind == "latent" else D,
            mla_original_qk_head_dim=D, mla_original_v_head_dim=D_LATENT,
            rope_mode=RopeMode[self.rope.upper()], rope_scale=1, rope_theta=10000,
            rope_scaling={}, rope_ext_factors=None, rotary_dim=D, enable_disaggregation=False,
            dtype=self.dtype, target="llvm",
        )  # fmt: skip

    def first(self, qkv, cache):
        return cache.attention_with_fused_qkv(0, qkv, H_Q, SCALE)

    def second(self, qkv, cache):
        return cache.attention_with_fused_qkv(1, qkv, H_Q, SCALE)

    def split(self, q, k, v, cache, layer=0):
        """The same as `first` without storing: over each other, over the past, merged."""
        own, own_sums = cache.self_attention(layer, q, k, v, SCALE)
        past, past_sums = cache.cross_attention(layer, q, v.shape[-1], SCALE)
        return cache.merge_attn_output_inplace(own, own_sums, past, past_sums)

    def latent(self, q, kv, cache, layer):
        """As models with latent attention have it, whose projections are identities here."""
        batch, length, d = kv.shape
        k = nn.op.broadcast_to(nn.op.unsqueeze(kv, 2), [batch, length, H_KV, d])
        v, _ = nn.op.split(k, [D_LATENT], axis=-1)
        cache = cache.append_mla_kv(layer, kv)
        return self.split(q, k, v, cache, layer)[0]

    def latent_first(self, q, kv, cache):
        return self.latent(q, kv, cache, 0)

    def latent_second(self, q, kv, cache):
        return self.latent(q, kv, cache, 1)

    def latent_one_each(self, q, kv, cache, layer):
        """With one token of each sequence, what is in the cache is all."""
        cache = cache.append_mla_kv(layer, kv)
        return cache.cross_attention(layer, q, D_LATENT, SCALE)[0]

    def latent_one_each_first(self, q, kv, cache):
        return self.latent_one_each(q, kv, cache, 0)

    def latent_one_each_second(self, q, kv, cache):
        return self.latent_one_each(q, kv, cache, 1)

    def positions(self, n, cache):
        return cache.get_query_positions(n)


@functools.cache
def machine(dtype, rope, kind="heads"):
    ints = dict.fromkeys(("sequences", "total", "chunk", "page", "window"), int)
    cache = nn.spec.Object(PagedKVCache)
    qkv = nn.spec.Tensor((1, "n", H_Q + 2 * H_KV, D), dtype)
    q, kv = (nn.spec.Tensor((1, "n", heads, D), dtype) for heads in (H_Q, H_KV))
    row = nn.spec.Tensor((1, "n", D), dtype)
    of_heads = {
        "first": {"qkv": qkv, "cache": cache},
        "second": {"qkv": qkv, "cache": cache},
        "split": {"q": q, "k": kv, "v": kv, "cache": cache},
    }
    of_latent = {
        f"latent_{one_each}{layer}": {"q": q, "kv": row, "cache": cache}
        for one_each in ("", "one_each_")
        for layer in ("first", "second")
    }
    spec = {"create": ints, "positions": {"n": int, "cache": cache}}
    spec |= of_latent if kind == "latent" else of_heads
    mod, _ = Model(dtype, rope, kind).export_tvm(spec)
    return relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())


PAGE = 4


def create(
    dtype="float32", rope="normal", sequences=8, total=160, chunk=32, window=0, kind="heads"
):  # fmt: skip
    sizes = (sequences, total, chunk, PAGE, window)
    return machine(dtype, rope, kind)["create"](*(shape(s) for s in sizes))


class Test:
    """One run: every operation on both caches, results and counts compared. Where runs share a
    cache, each has its own sequences, and counts are those of all."""

    def __init__(
        self, seed, dtype="float32", rope="normal", window=False, kind="heads", cache=None
    ):  # fmt: skip
        self.rng = np.random.default_rng(seed)
        self.dtype, self.kind, self.vm = dtype, kind, machine(dtype, rope, kind)
        self.total, self.window = 160, window or kind == "sliding"
        self.is_shared = cache is not None
        if cache is None:
            cache = create(dtype, rope, total=self.total, window=int(window), kind=kind)
        self.cache = cache
        self.dense = DenseCache(rope, layers_with_windows=[1] if kind == "sliding" else None)
        self.next_id = 1000 * seed
        self.counts = {}

    def call(self, name, *args):
        """A function of the cache, again where it is refused because of the pass of another."""
        while True:
            try:
                return builtin(name, self.cache, *args)
            except RuntimeError as error:
                if not self.is_shared or "kv_state_end_forward" not in str(error):
                    raise
                time.sleep(0)

    # ---- operations ------------------------------------------------------------------------------
    def add(self):
        if len(self.dense.sequences) == 8:
            return False
        self.next_id += 1
        self.call("kv_state_add_sequence", self.next_id)
        self.dense.sequences[self.next_id] = sequence = Sequence()
        if self.window and self.rng.random() < 0.5:
            size = int(self.rng.integers(3, 12))
            sequence.window, sequence.sinks = size, int(self.rng.integers(0, size))
            name = "attention_kv_cache_enable_sliding_window_for_seq"
            self.call(name, self.next_id, size, sequence.sinks)
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
        self.next_id += 1
        try:
            self.call("kv_state_fork_sequence", parent, self.next_id, position)
        except RuntimeError as error:
            assert "cache that is full" in str(error)
            return False
        count = length if position < 0 else position
        self.dense.sequences[self.next_id] = self.dense.sequences[parent].copy(count)
        return True

    def remove(self):
        which = self.pick()
        if which is None:
            return False
        self.call("kv_state_remove_sequence", which)
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
            self.call("kv_state_popn", which, n)
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
        self.call(name, shape(*chosen), shape(*leaves))
        for i, leaf in zip(chosen, leaves, strict=True):
            self.dense.commit(self.dense.sequences[i], leaf)
        return True

    def forward(self):
        is_tree = self.rng.random() < 0.3
        # What is not committed is no past: trees of latent attention are given at once.
        again = is_tree and self.kind != "latent"
        sequences = self.dense.sequences.items()
        ids = [i for i, s in sequences if (again or not s.tree) and not (is_tree and s.window)]
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
            self.call("kv_state_begin_forward", *args)
        except RuntimeError as error:
            assert "free pages" in str(error) and self.state() == before
            return False
        qkv = self.rng.standard_normal((LAYERS, sum(lengths), H_Q + 2 * H_KV, D))
        qkv = qkv.astype(self.dtype)
        one_each = not is_tree and max(lengths) == 1
        found = [self.attend(layer, qkv[layer], one_each) for layer in range(LAYERS)]
        positions = self.vm["positions"](shape(sum(lengths)), self.cache).numpy()
        builtin("kv_state_end_forward", self.cache)
        self.check(ids, lengths, parents, qkv.astype("float64"), found, positions)
        return True

    def attend(self, layer, qkv, one_each):
        """Our result; latent rows are the first heads of keys."""
        name = ("first", "second")[layer]
        if self.kind != "latent":
            return self.vm[name](qkv[None], self.cache).numpy()[0]
        q, kv = (np.ascontiguousarray(x)[None] for x in (qkv[:, :H_Q], qkv[:, H_Q]))
        return self.vm["latent_" + ("one_each_" if one_each else "") + name](
            q, kv, self.cache
        ).numpy()[0]

    def check(self, ids, lengths, parents, qkv, found, positions):
        tolerance = 2e-2 if self.dtype == "float16" else 2e-4
        begin = 0
        for index, (i, n) in enumerate(zip(ids, lengths, strict=True)):
            sequence, rows = self.dense.sequences[i], qkv[:, begin : begin + n]
            self.dense.slide(sequence)
            k, v = rows[:, :, H_Q : H_Q + H_KV], rows[:, :, H_Q + H_KV :]
            if self.kind == "latent":
                k, v = k[:, :, :1], k[:, :, :1, :D_LATENT]
            own = parents[index] if parents else None
            expected = self.dense.append(sequence, k.swapaxes(0, 1), v.swapaxes(0, 1), own)
            assert positions[begin : begin + n].tolist() == expected
            for layer in range(LAYERS):
                q = rows[layer, :, :H_Q]
                out = self.dense.attention(sequence, layer, q, expected, SCALE)
                np.testing.assert_allclose(
                    found[layer][begin : begin + n], out, rtol=tolerance, atol=tolerance
                )
            begin += n

    # ---- what is compared ------------------------------------------------------------------------
    def available(self):
        return builtin("attention_kv_cache_get_num_available_pages", self.cache)

    def state(self):
        if self.is_shared:
            return None
        return self.available(), builtin("attention_kv_cache_get_total_sequence_length", self.cache)

    def step(self):
        names = ["forward"] * 5 + ["add", "fork", "remove", "pop", "commit", "add"]
        name = names[self.rng.integers(len(names))]
        if getattr(self, name)():
            self.counts[name] = self.counts.get(name, 0) + 1
        lengths = sum(len(s.keys) for s in self.dense.sequences.values())
        assert self.is_shared or self.state()[1] == lengths

    def run(self, operations):
        for number in range(operations):
            try:
                self.step()
            except Exception as error:
                raise AssertionError(f"operation {number}: {error}") from error
        for i in list(self.dense.sequences):
            self.call("kv_state_remove_sequence", i)
        if not self.is_shared:
            check_all_is_back(self.cache, self.total)
        return self.counts


def check_all_is_back(cache, total):
    """No page is lost."""
    assert builtin("attention_kv_cache_get_num_available_pages", cache) == total // PAGE
    assert builtin("attention_kv_cache_empty", cache)


def run_in_threads(count, operations, dtype, rope, window, kind):
    """Runs that share a cache; what each did."""
    cache = create(
        dtype, rope, sequences=8 * count, total=80 * count, window=int(window), kind=kind
    )  # fmt: skip
    tests = [Test(1 + i, dtype, rope, window, kind, cache) for i in range(count)]
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        counts = list(pool.map(lambda test: test.run(operations), tests))
    check_all_is_back(cache, 80 * count)
    return counts


VARIANTS = (
    ("normal", False, "heads"), ("none", True, "heads"), ("inline", True, "heads"),
    ("normal", False, "sliding"), ("inline", False, "sliding"), ("none", False, "latent"),
)  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--operations", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=1, help="that share a cache")
    args = parser.parse_args()
    for rope, window, kind in VARIANTS:
        if args.threads > 1:
            each = args.operations // args.threads
            counts = run_in_threads(args.threads, each, args.dtype, rope, window, kind)
        else:
            counts = Test(args.seed, args.dtype, rope, window, kind).run(args.operations)
        print(args.dtype, rope, "window" if window else "", kind, counts, flush=True)


if __name__ == "__main__":
    main()
