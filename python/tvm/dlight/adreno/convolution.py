# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose channels lie in fours."""

from tvm.target import Target

from ..gpu.base import or_none, start
from . import utils
from .base import AdrenoScheduleRule


class Conv2d(AdrenoScheduleRule):
    """Convolutions of NCHW4c: four channels of a place in a thread, summed up in registers."""

    @staticmethod
    def schedule_conv2d(sch, blk):
        """Gives the convolution threads; what is done with its result happens in them."""
        if not sch.get_consumers(blk):
            sch.reindex(blk, ("write", 0))
        (result,) = sch.get_consumers(blk)
        sch.set_scope(blk, 0, "local")
        n, channels, row, column, lanes = sch.get_loops(result)
        # One axis of threads for each of the image: what a thread computes stays a plain index.
        block, thread = sch.split(column, [None, utils.threads_here()])
        axes = {sch.fuse(n, channels): "z", row: "y", block: "x"}
        for loop, axis in axes.items():
            sch.bind(loop, f"blockIdx.{axis}")
        sch.bind(thread, "threadIdx.x")
        sch.vectorize(lanes)
        # Its registers are those of the thread that stores them.
        sch.compute_at(blk, thread, preserve_unit_loops=True)
        own = sch.get_loops(blk)[len(sch.get_loops(result)) - 1 :]
        lanes, reduce = own[-1 - _reductions(sch, blk)], own[-_reductions(sch, blk) :]
        sch.reorder(*reduce, lanes)
        init = sch.decompose_reduction(blk, reduce[0])
        for part in (blk, init):
            sch.vectorize(sch.get_loops(part)[-1])

    @or_none
    def apply(self, func, target, _):
        """The scheduled function, or None where it is no convolution of NCHW4c."""
        sch, infos = start(func, keep_units=True)
        sums = [info for info in infos if info.is_reduction()]
        if len(sums) != 1 or sums[0].dom_kind() not in ("SSSSSRRR", "SSSSSRRRR"):
            return None
        if sums[0].dom()[4] != utils.LANES or len(sch.get(sums[0].block_rv).reads) != 2:
            return None
        with Target(target):
            left = utils.schedule_inline_blocks(sch, [i.block_rv for i in infos])
            at = [sch.get(b).init is not None for b in left].index(True)
            if len(left) > at + 2:
                return None
            self.schedule_conv2d(sch, left[at])
            utils.schedule_default(sch, left[:at])
        return sch


def _reductions(sch, blk):
    return sum(i.iter_type == i.CommReduce for i in sch.get(blk).iter_vars)
