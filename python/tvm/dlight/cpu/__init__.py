# SPDX-License-Identifier: Apache-2.0
"""Rules for CPUs. They are the ones of the default pipeline, defined in C++."""

from tvm import tir

from .base import CPUScheduleRule
from .gemv import GEMV

__all__ = ["GEMV", "BlockByBlock", "CPUScheduleRule", "RowByRow", "Winograd"]

for _name, _doc in tir.schedule.cpu_rules().items():
    globals()[_name] = type(_name, (CPUScheduleRule,), {"__doc__": _doc, "__module__": __name__})
