# SPDX-License-Identifier: Apache-2.0
"""Finds and loads the project's libraries."""

import functools
import os
import re
import sys
from pathlib import Path

import tvm_ffi

_PACKAGE = Path(__file__).resolve().parent
_FFI_FROM, _FFI_BELOW = (0, 1, 12), (0, 2)
_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")


NAMES = ("tvm_runtime", "tvm", "tvm_llvm")


def file_name(name):
    """What the file of library `name` is called on this system."""
    return f"lib{name}{_SUFFIX}"


def search_path():
    """The folders looked into, in order: TVM_LIBRARY_PATH, the installed package, the checkout's
    build."""
    env = [Path(p) for p in os.environ.get("TVM_LIBRARY_PATH", "").split(os.pathsep) if p]
    return [*env, _PACKAGE / "lib", _PACKAGE.parent.parent / "build" / "lib"]


def find(name):
    """The file of library `name` ("tvm_runtime", "tvm", "tvm_llvm"), or None.

    TVM_WITHOUT_LLVM hides the last one.
    """
    if name == "tvm_llvm" and os.environ.get("TVM_WITHOUT_LLVM"):
        return None
    candidates = (folder / file_name(name) for folder in search_path())
    return next((path for path in candidates if path.is_file()), None)


@functools.cache
def load(name):
    """Loads library `name` and registers what it holds; raises ImportError when it is not there."""
    path = find(name)
    if path is None:
        looked = "\n".join(f"  {folder}" for folder in search_path())
        raise ImportError(
            f"library {file_name(name)} not found; looked in\n{looked}\n"
            "Build it (`make build`), or set TVM_LIBRARY_PATH to the folder that holds it."
        )
    try:
        lib = tvm_ffi.load_module(str(path), keep_module_alive=True)
    except (RuntimeError, OSError) as error:
        raise ImportError(f"cannot load {path}: {error}") from error
    lib.get_function("Init")()
    return lib


def load_optional(name):
    """Like `load`, but False where the library does not exist.

    One that exists and is broken raises.
    """
    if find(name) is None:
        return False
    load(name)
    return True


def check_ffi_version():
    """The object layer is built against one version and runs with a range of them."""
    version = tuple(map(int, re.findall(r"\d+", tvm_ffi.__version__)[:3]))
    if not _FFI_FROM <= version < _FFI_BELOW:
        wanted = f"from {'.'.join(map(str, _FFI_FROM))} to below {'.'.join(map(str, _FFI_BELOW))}"
        raise ImportError(f"apache-tvm-ffi: expected a version {wanted}, got {tvm_ffi.__version__}")
