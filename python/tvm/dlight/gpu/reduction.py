# SPDX-License-Identifier: Apache-2.0
"""Reductions over several threads."""

from tvm import tir

from ..analysis import get_block_info, is_broadcast_epilogue
from ..analysis.gemv import step_of_matrix
from ..base import suggest_threads_per_block, try_inline_contiguous_spatial
from .base import GPUScheduleRule, bind_to_threads, fused, or_none, start, unroll_inside

_ACROSS = 16  # threads along the rows, and along the reduction, where memory runs along the rows


def one_reduction(func):
    """(schedule, the reduction, the block behind it or None) of a function with one reduction."""
    sch, infos = start(func)
    infos = try_inline_contiguous_spatial(sch, infos)
    if not infos or not infos[0].is_reduction() or len(infos) > 2:
        return None
    if len(infos) == 2 and not infos[1].is_injective():
        return None
    return sch, get_block_info(sch, infos[0].block_rv), infos[1] if len(infos) == 2 else None


def spatial_and_reduce(sch, info):
    """The loops of the block fused to one spatial and one of the reduction, and whether memory runs
    along the latter."""
    spatial = [i.loop_rv for i in info.iters if i.kind == "S"]
    reduce = [i for i in info.iters if i.kind == "R"]
    step = step_of_matrix(sch, info, reduce[-1])
    sch.reorder(*spatial, *(i.loop_rv for i in reduce))
    part = sch.fuse(*(i.loop_rv for i in reduce))
    return fused(sch, part, spatial), part, step in (None, 0, 1)


def _epilogue_on(sch, block, epilogue, grid, threads):
    """What uses the result, where it is computed."""
    is_broadcast = is_broadcast_epilogue(sch, block, epilogue.block_rv)
    sch.reverse_compute_at(epilogue.block_rv, grid)
    sch.set_scope(block, 0, "shared" if is_broadcast else "local")
    left = sch.get_loops(epilogue.block_rv)[1:]
    bind_to_threads(sch, fused(sch, epilogue.block_rv, left), threads)


def _divides(width, extent):
    """Whether a loop of the extent splits into whole parts, as far as is known."""
    return not isinstance(extent, tir.IntImm) or int(extent) % width == 0


def _uneven(sch, block, epilogue, grid, part, threads):
    """Parts of different sizes: threads without anything left to add leave steps out."""
    _, thread = sch.split(part, [None, threads])
    sch.bind(grid, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    if epilogue is not None:
        _epilogue_on(sch, block, epilogue, grid, threads)
    return sch


def inner_reduction(sch, target, info, epilogue, spatial, part):
    """A block of threads for each element: each thread sums a part, then all of them together."""
    (threads,) = suggest_threads_per_block(target, [sch.get(part)])
    if not _divides(threads, sch.get(part).extent):
        return _uneven(sch, info.block_rv, epilogue, spatial, part, threads)
    _, thread = sch.split(part, [None, threads])
    own = sch.rfactor(thread, 0)
    block = info.block_rv
    # Each thread's part.
    grid, rest, thread = sch.get_loops(own)
    sch.reorder(grid, thread, rest)
    sch.bind(grid, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    unroll_inside(sch, rest, 256)
    sch.set_scope(own, 0, "local")
    sch.decompose_reduction(own, rest)
    # The sum of the parts.
    sch.reverse_compute_at(block, grid)
    sch.bind(sch.get_loops(block)[-1], "threadIdx.x")
    if epilogue is not None:
        _epilogue_on(sch, block, epilogue, grid, threads)
    return sch


def inner_spatial(sch, info, epilogue, spatial, part):
    """Memory runs along the rows: so do threadIdx.x; threadIdx.y share the reduction."""
    extent = sch.get(spatial).extent
    if not _divides(_ACROSS, sch.get(part).extent):
        return _uneven(sch, info.block_rv, epilogue, spatial, part, _ACROSS)
    width = next(w for w in range(_ACROSS, 0, -1) if _divides(w, extent))
    grid, row = sch.split(spatial, [None, width])
    _, thread = sch.split(part, [None, _ACROSS])
    own = sch.rfactor(thread, 0)
    block = info.block_rv
    grid, row, rest, thread = sch.get_loops(own)
    sch.reorder(grid, row, thread, rest)
    sch.bind(grid, "blockIdx.x")
    sch.bind(row, "threadIdx.x")
    sch.bind(thread, "threadIdx.y")
    unroll_inside(sch, rest, 256)
    sch.set_scope(own, 0, "local")
    sch.decompose_reduction(own, rest)
    sch.reverse_compute_at(block, grid, preserve_unit_loops=True)
    # Its iterators are that of the parts, then the rows; each thread has the part it made.
    thread, row = sch.get_loops(block)[-2:]
    sch.reorder(row, thread)
    sch.bind(row, "threadIdx.x")
    sch.bind(thread, "threadIdx.y")
    if epilogue is not None:
        _epilogue_on(sch, block, epilogue, grid, width)
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
        spatial, part, is_inner = spatial_and_reduce(sch, info)
        if is_inner:
            return inner_reduction(sch, target, info, epilogue, spatial, part)
        return inner_spatial(sch, info, epilogue, spatial, part)
