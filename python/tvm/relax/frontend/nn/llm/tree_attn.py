# SPDX-License-Identifier: Apache-2.0
"""Attention of token trees: a token sees what is above it in its tree."""

from tvm.target import Target

from . import kv_cache_kernels as kernels


def tree_attn_cpu(h_kv, h_q, d, dtype, rope_scaling):
    """Trees over themselves; the mask gives the range of each node's subtree, in the order of a
    depth-first search."""
    return kernels.attention_prefill_ragged_cpu(h_kv, h_q, d, d, dtype, rope_scaling, tree=True)


def tree_attn_with_paged_kv_cache_cpu(h_kv, h_q, d, dtype, rope_scaling, page_size=16):
    """Trees over pages: all that comes before the tree, and what is above in it."""
    return kernels.attention_prefill_cpu(
        h_kv, h_q, d, dtype, False, rope_scaling, page_size, tree=True
    )


def _check_target(name, target):
    kind = Target(target).kind.name
    if kind not in ("llvm", "c"):
        raise NotImplementedError(f"{name}: expected a target of CPUs, llvm or c, got {kind}")


def tree_attn(h_kv, h_q, d, dtype, rope_scaling, target):
    """Trees over themselves, for a target."""
    _check_target("tree_attn", target)
    return tree_attn_cpu(h_kv, h_q, d, dtype, rope_scaling)


def tree_attn_with_paged_kv_cache(h_kv, h_q, d, dtype, rope_scaling, target):
    """Trees over pages, for a target."""
    _check_target("tree_attn_with_paged_kv_cache", target)
    return tree_attn_with_paged_kv_cache_cpu(h_kv, h_q, d, dtype, rope_scaling)
