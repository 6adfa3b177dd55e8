# SPDX-License-Identifier: Apache-2.0
"""Rules for CPUs."""

from tvm import tir

from ..base import ScheduleRule


class CPUScheduleRule(ScheduleRule):
    """A rule for CPUs that C++ defines, by the name of its class."""

    rule_name = None

    def is_target_available(self, target):
        """Whether the target is a CPU."""
        return "cpu" in target.keys

    def apply(self, func, target, tunable):
        """The scheduled function, or None."""
        schedule = tir.Schedule(func)
        name = self.rule_name or type(self).__name__
        return schedule if tir.schedule.apply_rule(schedule, name, "main", target) else None
