# SPDX-License-Identifier: Apache-2.0
"""The paged cache computes what a dense one does, counts its pages, and refuses what is wrong."""

import numpy as np
import pytest
import tvm

from . import paged
from .dense import attend
from .paged import H_KV, H_Q, PAGE, SCALE, D, builtin, create, machine, shape


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("rope, window, kind", paged.VARIANTS)
def test_random_operations(dtype, rope, window, kind):
    counts = paged.Test(7, dtype, rope, window, kind).run(250)
    assert {"forward", "add", "fork", "remove", "pop", "commit"} <= set(counts)


def _append(cache, ids, lengths, *parents):
    """Appends random tokens to both layers."""
    builtin("kv_state_begin_forward", cache, shape(*ids), shape(*lengths), *parents)
    qkv = np.random.default_rng(0).standard_normal((1, sum(lengths), H_Q + 2 * H_KV, D))
    qkv = qkv.astype("float32")
    vm = machine("float32", "normal")
    out = [vm[name](qkv, cache).numpy() for name in ("first", "second")]
    builtin("kv_state_end_forward", cache)
    return qkv, out


def _available(cache):
    return builtin("attention_kv_cache_get_num_available_pages", cache)


def test_pages_are_counted():
    cache = create(total=40)  # 10 pages
    builtin("kv_state_add_sequence", cache, 0)
    assert _available(cache) == 10
    _append(cache, [0], [5])
    assert _available(cache) == 8
    builtin("kv_state_fork_sequence", cache, 0, 1)  # shares a page, copies a part of one
    assert _available(cache) == 7
    builtin("kv_state_fork_sequence", cache, 0, 2, 4)  # shares
    assert _available(cache) == 7
    builtin("kv_state_remove_sequence", cache, 0)
    assert _available(cache) == 8
    builtin("kv_state_popn", cache, 1, 1)
    assert _available(cache) == 9
    assert builtin("attention_kv_cache_get_total_sequence_length", cache) == 8
    builtin("kv_state_clear", cache)
    assert _available(cache) == 10 and builtin("attention_kv_cache_empty", cache)


def test_keys_and_values_can_be_read():
    cache = create(rope="normal")
    builtin("kv_state_add_sequence", cache, 3)
    qkv, _ = _append(cache, [3], [6])
    k, v = (tvm.runtime.empty((2, 4, H_KV, D), "float32") for _ in range(2))
    builtin("attention_kv_cache_debug_get_kv", cache, 3, 1, 5, k, v)
    np.testing.assert_array_equal(v.numpy()[1], qkv[0, 1:5, H_Q + H_KV :])
    with pytest.raises(IndexError, match="expected tokens of 0 to 6, got 1 to 7"):
        builtin("attention_kv_cache_debug_get_kv", cache, 3, 1, 7, k, v)


def test_self_and_cross_attention_merged():
    """Over the tokens of a pass and over those before it is over all of them."""
    vm = machine("float32", "none")
    cache = create(rope="none")
    rng = np.random.default_rng(1)
    builtin("kv_state_add_sequence", cache, 0)
    old, new = (rng.standard_normal((1, n, H_Q + 2 * H_KV, D)).astype("float32") for n in (7, 3))
    builtin("kv_state_begin_forward", cache, shape(0), shape(7))
    vm["first"](old, cache)
    builtin("kv_state_end_forward", cache)
    builtin("kv_state_begin_forward", cache, shape(0), shape(3))
    q, k, v = np.split(new, [H_Q, H_Q + H_KV], axis=2)
    found, sums = vm["split"](*(np.ascontiguousarray(x) for x in (q, k, v)), cache)
    builtin("kv_state_end_forward", cache)
    both = np.concatenate([old, new], 1)[0].astype("float64")
    for i in range(3):
        seen = np.arange(10) <= 7 + i
        out, lse = attend(q[0, i], both[:, H_Q : H_Q + H_KV], both[:, H_Q + H_KV :], seen, SCALE)
        np.testing.assert_allclose(found.numpy()[0, i], out, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(sums.numpy()[0, i], lse, rtol=1e-4)


def _state(cache):
    return _available(cache), builtin("attention_kv_cache_get_total_sequence_length", cache)


@pytest.mark.parametrize(
    "name, args, error, text",
    [
        ("kv_state_add_sequence", (0,), ValueError, "expected a new sequence, got 0"),
        ("kv_state_remove_sequence", (9,), ValueError, "expected a sequence of the cache, got 9"),
        ("kv_state_fork_sequence", (9, 4), ValueError, "got 9"),
        ("kv_state_fork_sequence", (0, 1), ValueError, "expected a new sequence, got 1"),
        ("kv_state_fork_sequence", (0, 4, 99), ValueError, "between 0 and 6, got 99"),
        ("kv_state_fork_sequence", (0, 1, 2, 3), TypeError, "expected 3 or 4 arguments"),
        ("kv_state_popn", (0, 7), ValueError, "expected 0 to 6 tokens of sequence 0, got 7"),
        ("kv_state_popn", (0, -1), ValueError, "got -1"),
        ("kv_state_popn", (1, 4), ValueError, "behind the fork of sequence 1"),
        ("kv_state_begin_forward", (shape(0), shape(99)), ValueError, "at most 32 tokens"),
        ("kv_state_begin_forward", (shape(0, 1), shape(32)), ValueError, "a length for each"),
        ("kv_state_begin_forward", (shape(0, 0), shape(1, 1)), ValueError, "sequence once"),
        ("kv_state_begin_forward", (shape(0), shape(0)), ValueError, "positive lengths"),
        ("kv_state_begin_forward", (shape(7), shape(1)), ValueError, "got 7"),
        ("kv_state_begin_forward", (shape(0, 1), shape(16, 16)), RuntimeError, "free pages"),
        ("kv_state_begin_forward", (shape(0), shape(2), shape(0, 0)), ValueError, "earlier one"),
        ("kv_state_begin_forward", (shape(0), shape(2), shape(-1)), ValueError, "earlier one"),
        ("kv_state_end_forward", (), RuntimeError, "kv_state_begin_forward before it"),
        ("attention_kv_cache_get_query_positions", (), RuntimeError, "begin_forward before it"),
        (
            "attention_kv_cache_commit_accepted_token_tree_nodes", (shape(0), shape(0)),
            ValueError, "expected a sequence with a token tree",
        ),
        (
            "attention_kv_cache_enable_sliding_window_for_seq", (0, 8, 2),
            ValueError, "expected a cache made for sliding windows",
        ),
    ],
)  # fmt: skip
def test_errors_leave_the_cache_as_it_was(name, args, error, text):
    cache = create(total=24)
    builtin("kv_state_add_sequence", cache, 0)
    _append(cache, [0], [6])
    builtin("kv_state_fork_sequence", cache, 0, 1)
    before = _state(cache)
    with pytest.raises(error, match=text):
        builtin(name, cache, *args)
    assert _state(cache) == before
    _append(cache, [0, 1], [1, 2])  # it goes on


def test_an_exception_between_begin_and_end():
    cache = create()
    builtin("kv_state_add_sequence", cache, 0)
    builtin("kv_state_begin_forward", cache, shape(0), shape(2))
    vm = machine("float32", "normal")
    wrong = np.zeros((1, 3, H_Q + 2 * H_KV, D), "float32")  # there are two tokens
    with pytest.raises(ValueError, match="expected 2 rows of 8 x 16 float32"):
        vm["first"](wrong, cache)
    with pytest.raises(RuntimeError, match="expected kv_state_end_forward of the pass before"):
        builtin("kv_state_popn", cache, 0, 1)
    builtin("kv_state_end_forward", cache)
    builtin("kv_state_popn", cache, 0, 2)
    _append(cache, [0], [3])
    assert builtin("attention_kv_cache_get_total_sequence_length", cache) == 3


def test_attention_without_begin():
    cache = create()
    builtin("kv_state_add_sequence", cache, 0)
    qkv = np.zeros((1, 1, H_Q + 2 * H_KV, D), "float32")
    for _ in range(2):  # also after a pass
        with pytest.raises(RuntimeError, match="expected kv_state_begin_forward before it"):
            machine("float32", "normal")["first"](qkv, cache)
        _append(cache, [0], [1])


def test_forks_of_forks():
    """Each goes on alone, and pages stay as long as somebody has them."""
    cache = create()
    free = _available(cache)
    builtin("kv_state_add_sequence", cache, 0)
    _append(cache, [0], [6])
    for i in range(3):
        builtin("kv_state_fork_sequence", cache, i, i + 1)
        _append(cache, [i + 1], [2])
    k, v = (tvm.runtime.empty((2, 6, H_KV, D), "float32") for _ in range(2))
    builtin("attention_kv_cache_debug_get_kv", cache, 0, 0, 6, k, v)
    first = v.numpy()
    for i in range(3):  # parents go first
        builtin("kv_state_remove_sequence", cache, i)
    builtin("attention_kv_cache_debug_get_kv", cache, 3, 0, 6, k, v)
    np.testing.assert_array_equal(v.numpy(), first)
    assert builtin("attention_kv_cache_get_total_sequence_length", cache) == 12
    builtin("kv_state_remove_sequence", cache, 3)
    assert _available(cache) == free


def test_none_is_no_cache():
    with pytest.raises(TypeError):
        builtin("kv_state_clear", None)


def test_windows_are_for_caches_made_for_them():
    cache = create(rope="inline", window=1)
    builtin("kv_state_add_sequence", cache, 0)
    name = "attention_kv_cache_enable_sliding_window_for_seq"
    for window, sinks in ((0, 0), (4, 4), (4, -1)):
        with pytest.raises(ValueError, match="expected a window and fewer sinks"):
            builtin(name, cache, 0, window, sinks)
    builtin(name, cache, 0, 4, 1)
    with pytest.raises(ValueError, match="expected a sequence without a window"):
        builtin(name, cache, 0, 4, 1)
    with pytest.raises(ValueError, match="expected a sequence without a sliding window"):
        builtin("kv_state_fork_sequence", cache, 0, 1)
    vm = machine("float32", "inline")
    for _ in range(40):  # pages come back
        builtin("kv_state_begin_forward", cache, shape(0), shape(1))
        vm["first"](np.zeros((1, 1, H_Q + 2 * H_KV, D), "float32"), cache)
        builtin("kv_state_end_forward", cache)
    assert _available(cache) >= 160 // PAGE - 3


@pytest.mark.parametrize("rope, window, kind", [paged.VARIANTS[i] for i in (0, 2, 5)])
def test_threads_share_a_cache(rope, window, kind):
    """Each has its own sequences; what is refused because of another's pass is tried again."""
    counts = paged.run_in_threads(4, 60, "float32", rope, window, kind)
    assert all(count["forward"] > 0 for count in counts)


def test_latent_rows_can_be_read():
    cache, vm = create(rope="none", kind="latent"), machine("float32", "none", "latent")
    builtin("kv_state_add_sequence", cache, 3)
    rng = np.random.default_rng(0)
    q, kv = (rng.standard_normal(s).astype("float32") for s in ((1, 6, H_Q, D), (1, 6, D)))
    builtin("kv_state_begin_forward", cache, shape(3), shape(6))
    vm["latent_first"](q, kv, cache)
    builtin("kv_state_end_forward", cache)
    builtin("kv_state_fork_sequence", cache, 3, 4, 5)  # copies a part of a page
    rows = tvm.runtime.empty((2, 4, D), "float32")
    for sequence in (3, 4):
        builtin("attention_kv_cache_debug_get_kv_mla", cache, sequence, 1, 5, rows)
        np.testing.assert_array_equal(rows.numpy()[0], kv[0, 1:5])
    with pytest.raises(ValueError, match=r"expected \[2, 3, 16\] of float32"):
        builtin("attention_kv_cache_debug_get_kv_mla", cache, 3, 1, 4, rows)


def test_kinds_of_layers_are_not_mixed_up():
    cache = create(kind="latent", rope="none")
    builtin("kv_state_add_sequence", cache, 0)
    builtin("kv_state_begin_forward", cache, shape(0), shape(1))
    name = "attention_kv_cache_attention_with_fused_qkv"
    qkv, out = (tvm.runtime.empty((1, 1, n, D), "float32") for n in (H_Q + 2 * H_KV, H_Q))
    with pytest.raises(ValueError, match="expected a layer without latent attention, got 0"):
        builtin(name, cache, 0, 1.0, qkv, out)
    builtin("kv_state_end_forward", cache)
    cache = create()
    builtin("kv_state_add_sequence", cache, 0)
    builtin("kv_state_begin_forward", cache, shape(0), shape(1))
    with pytest.raises(ValueError, match="expected a layer of latent attention, got 1"):
        row = tvm.runtime.empty((1, D), "float32")
        builtin("attention_kv_cache_append_mla_kv", cache, 1, row)
    with pytest.raises(ValueError, match="expected no sliding window with latent attention, got 1"):
        create(kind="latent", rope="none", window=1)


def test_trees_with_windows_or_before_a_commit():
    cache, vm = create(window=1), machine("float32", "normal")
    for i in range(2):
        builtin("kv_state_add_sequence", cache, i)
    builtin("attention_kv_cache_enable_sliding_window_for_seq", cache, 0, 4, 1)
    tree = (shape(1), shape(2), shape(-1, 0))
    with pytest.raises(ValueError, match="without a sliding window, got 0"):
        builtin("kv_state_begin_forward", cache, shape(0), shape(2), shape(-1, 0))
    q, kv = (np.zeros((1, 2, heads, D), "float32") for heads in (H_Q, H_KV))
    builtin("kv_state_begin_forward", cache, *tree)
    vm["split"](q, kv, kv, cache)
    builtin("kv_state_end_forward", cache)
    builtin("kv_state_begin_forward", cache, *tree)  # goes on with the tree
    with pytest.raises(ValueError, match="token trees to be committed before the pass"):
        vm["split"](q, kv, kv, cache)
    builtin("kv_state_end_forward", cache)


def test_trees_for_a_target():
    from tvm.relax.frontend.nn.llm import tree_attn

    for name in ("tree_attn", "tree_attn_with_paged_kv_cache"):
        make, on_cpus = getattr(tree_attn, name), getattr(tree_attn, name + "_cpu")
        args = (H_KV, H_Q, D, "float32", {})
        tvm.ir.assert_structural_equal(make(*args, target="llvm"), on_cpus(*args))
        with pytest.raises(NotImplementedError, match="expected a target of CPUs, .* got cuda"):
            make(*args, target="cuda -arch=sm_80")
