# SPDX-License-Identifier: Apache-2.0
"""What rules are, and the pass that applies them."""

from .schedule_rule import ScheduleRule
from .transform import ApplyDefaultSchedule

__all__ = ["ApplyDefaultSchedule", "ScheduleRule"]
