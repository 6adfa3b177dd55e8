# SPDX-License-Identifier: Apache-2.0
"""The pass that applies rules."""

from tvm import tir
from tvm.ir.transform import module_pass
from tvm.target import Target


@module_pass(opt_level=0, name="ApplyDefaultSchedule")
class ApplyDefaultSchedule:
    """Schedules each function that nobody scheduled with the first rule that fits it."""

    def __init__(self, *rules):
        self.rules = rules

    def transform_module(self, mod, _):
        """The module with its functions scheduled and marked `tir.is_scheduled`."""
        changed = {}
        for var, func in mod.functions.items():
            if not isinstance(func, tir.PrimFunc) or tir.schedule.is_scheduled(func):
                continue
            target = (func.attrs or {}).get("target") or Target.current(allow_none=False)
            if (schedule := _first(self.rules, func, target)) is not None:
                changed[var] = schedule.mod["main"].with_attr("tir.is_scheduled", True)
        for var, func in changed.items():
            mod[var] = func
        return mod


def _first(rules, func, target):
    for rule in rules:
        if not rule.is_target_available(target):
            continue
        schedule = rule.apply(func, target, False)
        if isinstance(schedule, (list, tuple)):
            if len(schedule) != 1:
                raise ValueError(
                    f"{type(rule).__name__}: expected one schedule where none is chosen by "
                    f"measuring, got {len(schedule)}"
                )
            schedule = schedule[0]
        if schedule is not None:
            return schedule
    return None
