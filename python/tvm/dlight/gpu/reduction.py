# SPDX-License-Identifier: Apache-2.0
"""Reductions over several threads."""

from ..analysis import get_block_info
from ..base import try_inline_contiguous_spatial
from .base import GPUScheduleRule, bind_to_threads, fused, or_none, start, threads_of


def one_reduction(func):
    """(schedule, the reduction, the block behind it or None) of a function with one reduction."""
    sch, infos = start(func)
    infos = try_inline_contiguous_spatial(sch, infos)
    if not infos or not infos[0].is_reduction() or len(infos) > 2:
        return None
    if len(infos) == 2 and not infos[1].is_injective():
        return None
    return sch, get_block_info(sch, infos[0].block_rv), infos[1] if len(infos) == 2 else None


def across_threads(sch, info, epilogue, threads):
    """A block of threads for each element, each thread takes a part of the reduction."""
    spatial = [i.loop_rv for i in info.iters if i.kind == "S"]
    reduce = [i.loop_rv for i in info.iters if i.kind == "R"]
    sch.reorder(*spatial, *reduce)
    part = fused(sch, None, reduce)
    block = fused(sch, part, spatial)
    _, thread = sch.split(part, [None, threads])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    if epilogue is not None:
        sch.reverse_compute_at(epilogue.block_rv, block)
        left = sch.get_loops(epilogue.block_rv)[1:]
        bind_to_threads(sch, fused(sch, epilogue.block_rv, left), threads)
    return sch


class Reduction(GPUScheduleRule):
    """One reduction, and at most one block that uses its result."""

    @or_none
    def apply(self, func, target, _):
        """The scheduled function, or None."""
        found = one_reduction(func)
        if found is None:
            return None
        sch, info, epilogue = found
        if any(i.kind == "O" for i in info.iters) or "R" not in info.dom_kind():
            return None
        return across_threads(sch, info, epilogue, threads_of(target))
