# SPDX-License-Identifier: Apache-2.0
"""A machine-learning compiler: tensor programs in, fast native code out."""

import importlib

from . import _torch

_torch.import_object_layer()

import tvm_ffi  # noqa: E402

from . import _aliases, _libs  # noqa: E402
from . import error as error  # noqa: E402  registers the classes that cross into C++ and back

_libs.check_ffi_version()
_libs.load("tvm_runtime")
_torch.register()
_libs.load_optional("tvm")  # a deployment may hold the runtime alone
tvm_ffi.get_global_func("runtime.watch_interrupts")()
_aliases.install()
# CMakeLists.txt holds the version, the library knows it.
__version__ = str(tvm_ffi.get_global_func("support.libinfo")()["TVM_VERSION"])

from . import runtime as runtime  # noqa: E402  gives tensors, devices and modules their classes


def __getattr__(name):
    """Submodules and the names that live in them are loaded on first use."""
    if name[:1] == "_" and "tvm." + name not in _aliases.NAMES:
        raise AttributeError(f"module 'tvm' has no attribute '{name}'")
    value = _aliases.resolve("tvm." + name)
    if value is None:
        if "tvm." + name in _aliases.GONE:
            raise _aliases.no_attribute("tvm", name, __dir__)
        try:
            value = importlib.import_module("tvm." + name)
        except ModuleNotFoundError as missing:
            if missing.name != "tvm." + name:
                raise
            raise _aliases.no_attribute("tvm", name, __dir__) from None
    globals()[name] = value
    return value


def __dir__():
    import pkgutil

    modules = (m.name for m in pkgutil.iter_modules(__path__) if m.name[0] != "_")
    return sorted({*globals(), *modules, *_aliases.names_in("tvm")})
