# SPDX-License-Identifier: Apache-2.0
"""What the LLVM backend knows of targets; the names derive from it once it is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tvm_ffi

from tvm._derive import fill, function
from tvm.error import InternalError

from .target import Target

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.runtime import Module

    from .target import TargetLike

_target, _ = fill("tvm.target")
_derived, __dir__ = fill(__name__)


def build_module(mod: IRModule, target: TargetLike) -> Module:
    """Runs the code generator of a target on a lowered module."""
    return _target("build_module")(mod, Target.canon_target(target))


def llvm_get_targets() -> list[str]:
    """The architectures LLVM generates code for, as LLVM and as triples spell them."""
    names = [str(name) for name in _registered("llvm_get_targets")()]
    return [*names, *(n.replace("-", "_") for n in names if "-" in n)]


def target_has_features(cpu_features: str | list[str], target: Target | None = None) -> bool:
    """Whether a target, or the current one, has all of the features."""
    if target is None and Target.current(allow_none=True) is None:
        raise InternalError("Target context required. Please set it by constructing it with Target")
    return _registered("target_has_features")(cpu_features, target)


def llvm_version_major(allow_none: bool = False) -> int | None:
    """The version of the LLVM inside, or None when there is none and that is allowed."""
    if not _target("load_backend")("llvm"):
        if allow_none:
            return None
        raise RuntimeError("expected the llvm backend (libtvm_llvm.so), which is not installed")
    return int(str(tvm_ffi.get_global_func("backend.llvm.version")()).split(".")[0])


def _require_llvm(name):
    if not _target("load_backend")("llvm"):
        raise AttributeError(
            f"{name}: expected the llvm backend (libtvm_llvm.so), which is not installed"
        )


def _registered(name):
    _require_llvm(name)
    return function("target.codegen." + name, __name__)


def __getattr__(name):
    if name[:1] != "_":
        _require_llvm(name)
    return _derived(name)
