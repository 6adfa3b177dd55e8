# SPDX-License-Identifier: Apache-2.0
"""What the LLVM backend knows of targets; the names derive from it once it is loaded."""

import tvm_ffi

from tvm._derive import fill

from .target import Target

_ir, _ = fill("tvm.ir")
_derived, __dir__ = fill(__name__)


def build_module(mod, target):
    """Runs the code generator of a target on a lowered module."""
    target = Target.canon_target(target)
    return tvm_ffi.get_global_func("target.build." + str(target.kind.name))(mod, target)


def llvm_version_major(allow_none=False):
    """The version of the LLVM inside, or None when there is none and that is allowed."""
    if not _ir("LoadLLVM")():
        if allow_none:
            return None
        raise RuntimeError("expected the LLVM backend (libtvm_llvm), which is not installed")
    return int(str(tvm_ffi.get_global_func("backend.llvm.version")()).split(".")[0])


def __getattr__(name):
    if name[:1] != "_" and not _ir("LoadLLVM")():
        raise AttributeError(
            f"{name}: expected the LLVM backend (libtvm_llvm), which is not installed"
        )
    return _derived(name)
