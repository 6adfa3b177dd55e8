# SPDX-License-Identifier: Apache-2.0
"""What fits any function of plain blocks."""

from ..base import try_inline
from .base import GPUScheduleRule, bind_to_grid, or_none, start, threads_of


class Fallback(GPUScheduleRule):
    """One thread for each element that a block writes; a reduction runs in its thread."""

    @or_none
    def apply(self, func, target, _):
        """The scheduled function; None where its blocks are not plain."""
        sch, infos = start(func)
        for info in try_inline(sch, infos):
            spatial = [i for i in info.iters if i.kind == "S"]
            others = [i.loop_rv for i in info.iters if i.kind != "S"]
            if others:
                sch.reorder(*(i.loop_rv for i in spatial), *others)
            around = others[0] if others else info.block_rv
            bind_to_grid(sch, around, [i.loop_rv for i in spatial], threads_of(target))
            if info.is_reduction() and others:
                sch.decompose_reduction(info.block_rv, others[0])
        return sch
