# SPDX-License-Identifier: Apache-2.0
"""Copies into another layout."""

from tvm.target import Target

from ..gpu.base import or_none, start
from . import utils
from .base import AdrenoScheduleRule


class LayoutTransform(AdrenoScheduleRule):
    """Copies into another layout: with `use_op_name` those whose function is called so, else any
    function that computes nothing but one result from one input."""

    def __init__(self, use_op_name=True):
        self.use_op_name = use_op_name

    @or_none
    def apply(self, func, target, _):
        """The scheduled function, or None where it is no such copy."""
        sch, infos = start(func)
        name = str((func.attrs or {}).get("global_symbol", ""))
        if self.use_op_name and "layout_transform" not in name:
            return None
        if len(func.params) != 2 or not all(info.is_injective() for info in infos):
            return None
        with Target(target):
            utils.schedule_default(sch, utils.schedule_inline_blocks(sch))
        return sch
