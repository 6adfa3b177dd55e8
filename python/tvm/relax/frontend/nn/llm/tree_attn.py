# SPDX-License-Identifier: Apache-2.0
"""Attention of token trees: a token sees what is above it in its tree."""

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
