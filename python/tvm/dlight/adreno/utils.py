# SPDX-License-Identifier: Apache-2.0
"""Threads and vectors for one block."""

from tvm import tir
from tvm.target import Target

from ..analysis import get_block_info, get_root_block
from ..base import try_inline
from ..gpu.base import bind_to_grid, threads_of

LANES = 4  # of a register, and of an element of a texture


def threads_here():
    """How many threads a block has on the current target, 64 where there is none."""
    target = Target.current()
    return 64 if target is None else threads_of(target, 256)


def schedule_inline_blocks(sch, blocks=None):
    """Inlines the blocks that can be, of all where none are given; returns the others."""
    if blocks is None:
        blocks = sch.get_child_blocks(get_root_block(sch))
    infos = [get_block_info(sch, block) for block in blocks]
    if None in infos:
        return list(blocks)
    return [info.block_rv for info in try_inline(sch, infos)]


def schedule_default(sch, blocks=None):
    """Gives each block threads, of all where none are given."""
    for block in sch.get_child_blocks(get_root_block(sch)) if blocks is None else blocks:
        schedule_fallback(sch, block)


def schedule_fallback(sch, blk):
    """A thread for each element that the block writes, or for four of them that lie next to each
    other; a reduction runs in its thread."""
    info = get_block_info(sch, blk)
    if info is None:
        raise tir.ScheduleError(f"schedule_fallback: expected a plain block, got {sch.get(blk)}")
    spatial = [i for i in info.iters if i.kind == "S"]
    others = [i.loop_rv for i in info.iters if i.kind != "S"]
    lanes = None
    last = spatial[-1] if spatial else None
    if last is not None and _is_last(sch, blk, last.var) and len(spatial) > 1 and last.dom == LANES:
        lanes = last.loop_rv
        spatial.pop()
    order = [*(i.loop_rv for i in spatial), *others, *([] if lanes is None else [lanes])]
    if len(order) > 1:
        sch.reorder(*order)
    inside = [*others, *([] if lanes is None else [lanes])]
    loops = [i.loop_rv for i in spatial]
    bind_to_grid(sch, inside[0] if inside else blk, loops, threads_here())
    parts = [blk]
    if info.is_reduction() and others:
        parts.append(sch.decompose_reduction(blk, others[0]))
    if lanes is not None:
        for part in parts:
            sch.vectorize(sch.get_loops(part)[-1])


def _is_last(sch, blk, var):
    """Whether the block writes elements next to each other along its iterator."""
    index = sch.get(blk).writes[0].region[-1].min
    return isinstance(index, tir.Var) and index.same_as(var)
