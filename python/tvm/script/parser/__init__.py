# SPDX-License-Identifier: Apache-2.0
"""TVMScript: Python's syntax read as programs."""

from . import core, ir, tir
from .core.entry import parse
from .ir import ir_module

__all__ = ["core", "ir", "ir_module", "parse", "tir"]
