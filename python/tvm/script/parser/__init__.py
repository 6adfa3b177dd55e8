# SPDX-License-Identifier: Apache-2.0
"""TVMScript: Python's syntax read as programs. Each module here but `core` is a language."""

import importlib
import pkgutil

from . import core, ir
from .core.entry import parse
from .ir import ir_module

__all__ = ["core", "ir", "ir_module", "parse"]


def __getattr__(name):
    if name in __dir__():
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted({*__all__, *(module.name for module in pkgutil.iter_modules(__path__))})
