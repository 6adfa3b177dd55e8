# SPDX-License-Identifier: Apache-2.0
"""TVMScript: programs written and printed as Python text. Its languages are in `parser`."""

import importlib
import pkgutil

from tvm import _aliases

_NAMES = {
    "ir_module": ("parser", "ir_module"),
    "from_source": ("parser", "parse"),
    "parse": ("parser", "parse"),
    "cprint": ("highlight", "cprint"),
}
_MODULES = ("parser", "ir_builder", "highlight", "printer")


def _languages():
    parser = pkgutil.iter_modules([f"{path}/parser" for path in __path__])
    return [module.name for module in parser if module.name != "core"]


def __getattr__(name):
    if name in _MODULES:
        value = importlib.import_module(f"tvm.script.{name}")
    elif f"tvm.script.{name}" in _aliases.MODULES:
        value = importlib.import_module(f"tvm.script.{name}")
    elif name in _languages():
        value = importlib.import_module(f"tvm.script.parser.{name}")
    elif name in _NAMES:
        module, attribute = _NAMES[name]
        value = getattr(importlib.import_module(f"tvm.script.{module}"), attribute)
    elif name[:1] != "_":
        from tvm import _derive

        value = _derive.node_class("script." + name, __name__) if name[:1].isupper() else None
        if value is None:
            raise AttributeError(f"module 'tvm.script' has no attribute '{name}'")
    else:
        raise AttributeError(f"module 'tvm.script' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*_NAMES, *_MODULES, *_languages()})
