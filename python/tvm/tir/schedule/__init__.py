# SPDX-License-Identifier: Apache-2.0
"""Schedules: transforming programs by primitives, with a trace of how."""

import importlib

from tvm._derive import fill
from tvm.tir.block_scope import BlockScope, Dependency, DepKind, StmtSRef

from .instruction import Instruction, InstructionKind
from .schedule import BlockRV, ExprRV, LoopRV, Schedule, ScheduleError
from .state import ScheduleDebugMask, ScheduleState
from .trace import Trace

_derived, __dir__ = fill(__name__)
_SUBMODULES = ("analysis", "testing", "transform")


def __getattr__(name):
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _derived(name)
