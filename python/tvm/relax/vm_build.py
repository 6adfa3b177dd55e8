# SPDX-License-Identifier: Apache-2.0
"""relax.build: graphs to executables of the virtual machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import tvm_ffi

from tvm import transform
from tvm._derive import function
from tvm.runtime import tensor
from tvm.runtime.vm import VMExecutable
from tvm.target import Target

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.target.target import TargetLike

# As users give one: a name, a pass, a function of a module, or None.
Pipeline: TypeAlias = "str | transform.Pass | Callable[[IRModule], IRModule] | None"

_build = function("driver.BuildRelax", __name__)


def as_pass(pipeline: Pipeline) -> transform.Pass | None:
    """A pipeline as users give it as a pass; None stands for the one of tvm.compile."""
    if pipeline is None:
        return transform.Sequential([], name="nothing")
    if pipeline == "default":
        return None
    if isinstance(pipeline, str):
        from .pipeline import get_pipeline

        return get_pipeline(pipeline)
    if isinstance(pipeline, transform.Pass):
        return pipeline
    if not callable(pipeline):
        raise TypeError(
            "relax_pipeline: expected a name, a pass, a function of a module or None, got "
            f"{type(pipeline).__name__}"
        )
    return transform.module_pass(lambda mod, ctx: pipeline(mod), opt_level=0, name="pipeline")


def build(
    mod: IRModule,
    target: TargetLike | None = None,
    params: Mapping[str, Any] | None = None,
    relax_pipeline: Pipeline = "default",
    tir_pipeline: str | transform.Pass | None = "default",
    exec_mode: str = "bytecode",
    *,
    system_lib: bool | None = None,
) -> VMExecutable:
    """Compiles the graphs of a module, and its kernels, to a VMExecutable.

    Parameters
    ----------
    mod : IRModule
    target : str or Target; the current target, else this machine, if None.
    params : values of parameters of `main`, by name; they become part of the executable.
    relax_pipeline : the passes that lower graphs: "default" for those of this compiler, another
        name of relax.get_pipeline, a Pass, a function of a module, or None for none.
    tir_pipeline : the passes that lower kernels, as tvm.tir.build takes them.
    exec_mode : "bytecode", or "compiled" for machine code of the graphs themselves.
    system_lib : exported as .o or .a, the model registers itself in the program it is linked into,
        which finds it by tvm.runtime.system_lib() or, in C, TVMModelOpenLinked.
    """
    if exec_mode not in ("bytecode", "compiled"):
        raise ValueError(f"build: expected exec_mode 'bytecode' or 'compiled', got {exec_mode!r}")
    if tir_pipeline == "default":
        tir_pipeline = None
    elif tir_pipeline is not None:
        from tvm.tir._build import as_pipeline  # a model that is found on disk needs no tvm.tir

        tir_pipeline = as_pipeline(tir_pipeline)
    params = {} if params is None else params
    if not isinstance(params, (Mapping, tvm_ffi.Map)):
        raise TypeError(
            "build: expected params as a dictionary from names to tensors, got "
            f"{type(params).__name__}"
        )
    values = {
        name: value if isinstance(value, tvm_ffi.Tensor) else tensor(value)
        for name, value in params.items()
    }
    code = _build(
        mod,
        Target.canon_target(target),
        values,
        as_pass(relax_pipeline),
        tir_pipeline,
        exec_mode == "compiled",
        bool(system_lib),
    )
    return VMExecutable(code)
