# SPDX-License-Identifier: Apache-2.0
"""Building graphs. Operators, and their groups such as `nn`, are those of `tvm.relax.op`."""

import inspect as _inspect
import types as _types

from tvm import relax as _relax

from . import frame as frame
from . import ir as _ir
from .ir import *  # noqa: F403


class Group:
    """Operators of one group: R.nn."""

    def __init__(self, name, module):
        self._name, self._module = name, module

    def __getattr__(self, name):
        return _operator(self._module, name, self._name)

    def __dir__(self):
        return _names(self._module)


def _names(module):
    return [
        n for n in dir(module) if n[0] != "_" and not _inspect.isclass(getattr(module, n, None))
    ]


def _operator(module, name, path):
    value = None if name[:1] == "_" else getattr(module, name, None)
    if isinstance(value, _types.ModuleType):
        owned = value.__name__.startswith("tvm.relax.op.")
        return Group(f"{path}.{name}", value) if owned else _missing(module, name, path)
    return _missing(module, name, path) if value is None else value


def _missing(module, name, path):
    from tvm.script.parser.core.error import did_you_mean

    hint = did_you_mean(name, _names(module))
    raise AttributeError(f"{path}: expected a name of TVMScript, got '{name}'{hint}")


def __getattr__(name):
    value = getattr(_relax, name, None) if name[:1].isupper() else None
    if not isinstance(value, type):
        value = _operator(_relax.op, name, "R")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*_ir.__all__, *_names(_relax.op), "frame"})
