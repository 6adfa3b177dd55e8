# SPDX-License-Identifier: Apache-2.0
"""What the LLVM backend knows of targets; the names derive from it once it is loaded."""

import tvm_ffi

from tvm._derive import fill

from .target import Target

_target, _ = fill("tvm.target")
_derived, __dir__ = fill(__name__)


def build_module(mod, target):
    """Runs the code generator of a target on a lowered module."""
    return _target("build_module")(mod, Target.canon_target(target))


def llvm_version_major(allow_none=False):
    """The version of the LLVM inside, or None when there is none and that is allowed."""
    if not _target("load_backend")("llvm"):
        if allow_none:
            return None
        raise RuntimeError("expected the llvm backend (libtvm_llvm.so), which is not installed")
    return int(str(tvm_ffi.get_global_func("backend.llvm.version")()).split(".")[0])


def __getattr__(name):
    if name[:1] != "_" and not _target("load_backend")("llvm"):
        raise AttributeError(
            f"{name}: expected the llvm backend (libtvm_llvm.so), which is not installed"
        )
    return _derived(name)
