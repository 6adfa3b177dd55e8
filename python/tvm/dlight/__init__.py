# SPDX-License-Identifier: Apache-2.0
"""Schedules without search: rules, and a pass that applies them."""

from . import base, cpu
from .base import ApplyDefaultSchedule, ScheduleRule

__all__ = ["ApplyDefaultSchedule", "ScheduleRule", "base", "cpu"]
