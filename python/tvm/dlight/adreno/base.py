# SPDX-License-Identifier: Apache-2.0
"""What the rules for Adreno share."""

from ..base import ScheduleRule


class AdrenoScheduleRule(ScheduleRule):
    """A rule for Adreno GPUs."""

    def is_target_available(self, target):
        """Whether the target is an Adreno GPU."""
        return "adreno" in target.keys
