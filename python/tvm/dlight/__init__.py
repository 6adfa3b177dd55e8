# SPDX-License-Identifier: Apache-2.0
"""Schedules without search: rules, and a pass that applies them."""

from . import adreno, analysis, base, benchmark, cpu, gpu
from .analysis import BlockInfo, IterInfo, SBlockInfo, normalize_prim_func
from .base import ApplyDefaultSchedule, ScheduleRule, try_inline, try_inline_contiguous_spatial

__all__ = [
    "ApplyDefaultSchedule",
    "BlockInfo",
    "IterInfo",
    "SBlockInfo",
    "ScheduleRule",
    "adreno",
    "analysis",
    "base",
    "benchmark",
    "cpu",
    "gpu",
    "normalize_prim_func",
    "try_inline",
    "try_inline_contiguous_spatial",
]
