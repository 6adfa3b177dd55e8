# SPDX-License-Identifier: Apache-2.0
"""Pooling."""

from tvm.target import Target

from ..gpu.base import or_none, start
from . import utils
from .base import AdrenoScheduleRule


class Pool2D(AdrenoScheduleRule):
    """Reductions over the windows of an image, and what is around them: each window in a thread."""

    @or_none
    def apply(self, func, target, _):
        """The scheduled function, or None where it is no pooling."""
        sch, infos = start(func)
        windows = [info for info in infos if info.is_reduction()]
        if len(windows) != 1 or windows[0].dom_kind() not in ("SSSSRR", "SSSSSRR"):
            return None
        if len(sch.get(windows[0].block_rv).reads) != 1:
            return None
        with Target(target):
            utils.schedule_default(sch, utils.schedule_inline_blocks(sch))
        return sch
