# SPDX-License-Identifier: Apache-2.0
"""What fits any function of plain blocks."""

from tvm.target import Target

from ..analysis.common_analysis import get_max_threads_per_block
from ..gpu.base import or_none, start
from . import utils
from .base import AdrenoScheduleRule

__all__ = ["Fallback", "get_max_threads_per_block"]


class Fallback(AdrenoScheduleRule):
    """One thread for each element, or each four of them, that a block writes."""

    @staticmethod
    def schedule_inline_blocks(sch, blocks):
        """Inlines the blocks that can be; returns the others."""
        return utils.schedule_inline_blocks(sch, blocks)

    @staticmethod
    def schedule_default(sch, blk):
        """Gives one block threads."""
        utils.schedule_fallback(sch, blk)

    @staticmethod
    def schedule_fallback(sch):
        """Inlines what can be and gives the other blocks threads."""
        utils.schedule_default(sch, utils.schedule_inline_blocks(sch))

    @or_none
    def apply(self, func, target, _):
        """The scheduled function; None where its blocks are not plain."""
        sch, _ = start(func)
        with Target(target):
            self.schedule_fallback(sch)
        return sch
