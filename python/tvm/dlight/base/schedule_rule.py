# SPDX-License-Identifier: Apache-2.0
"""The interface of rules."""


class ScheduleRule:
    """Schedules a function, or passes it on to the next rule."""

    def apply(self, func, target, tunable):
        """A Schedule of `func` for `target`, a list of them where `tunable`, or None where the rule
        does not fit."""
        raise NotImplementedError(f"{type(self).__name__} defines no apply(func, target, tunable)")

    def is_target_available(self, target):
        """Whether the rule is one for this target."""
        return True

    @staticmethod
    def from_callable(name):
        """A decorator that makes a rule of a function (func, target, tunable) -> schedule."""

        def decorate(function):
            def apply(self, func, target, tunable):
                return function(func, target, tunable)

            return type(name, (ScheduleRule,), {"apply": apply, "__doc__": function.__doc__})()

        return decorate
