# SPDX-License-Identifier: Apache-2.0
"""Inlining of what need not be computed by itself."""

from tvm.tir import ScheduleError


def _inline(sch, info):
    """Inlines a block into its consumers, or into its producer."""
    for inline in (sch.compute_inline, sch.reverse_compute_inline):
        try:
            inline(info.block_rv)
            return True
        except ScheduleError:
            pass
    return False


def _inline_all(sch, infos):
    """Inlines until nothing can be inlined any more; returns what is left."""
    left, changed = list(infos), True
    while changed:
        kept = [info for info in left if not _inline(sch, info)]
        left, changed = kept, len(kept) < len(left)
    return left


def try_inline(sch, blocks):
    """Inlines the blocks that can be, as far as possible; returns the others."""
    return _inline_all(sch, blocks)


def try_inline_contiguous_spatial(sch, block_infos):
    """Inlines among runs of blocks without reductions in between; returns the blocks left."""
    left, run = [], []
    for info in [*block_infos, None]:
        if info is not None and info.is_injective():
            run.append(info)
            continue
        left += _inline_all(sch, run)
        run = []
        if info is not None:
            left.append(info)
    return left
