# SPDX-License-Identifier: Apache-2.0
"""Rules for CPUs. They are the ones of the default pipeline, defined in C++."""

from tvm import tir

from ..base import ScheduleRule

__all__ = ["BlockByBlock", "RowByRow"]


class CPUScheduleRule(ScheduleRule):
    """A rule that C++ defines."""

    def is_target_available(self, target):
        """Whether the target is a CPU."""
        return "cpu" in target.keys

    def apply(self, func, target, tunable):
        """The scheduled function, or None."""
        schedule = tir.Schedule(func)
        name = type(self).__name__
        return schedule if tir.schedule.apply_rule(schedule, name, "main", target) else None


for _name, _doc in tir.schedule.cpu_rules().items():
    globals()[_name] = type(_name, (CPUScheduleRule,), {"__doc__": _doc, "__module__": __name__})
