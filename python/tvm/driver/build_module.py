# SPDX-License-Identifier: Apache-2.0
"""tvm.build and tvm.compile."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import tvm_ffi

import tvm
from tvm.runtime import Executable
from tvm.runtime.vm import VMExecutable

if TYPE_CHECKING:
    from tvm.ir.transform import Pass
    from tvm.runtime import Module
    from tvm.target.target import TargetLike

# A PrimFunc, an IRModule, a Schedule, or the path of a model.
Program: TypeAlias = Any


def _model(path):
    """The graph of a model's file: PyTorch's archives by their name, else ONNX."""
    if path.endswith(".pt2"):
        from tvm.relax.frontend.torch import from_archive

        return from_archive(path)
    from tvm.relax.frontend.onnx import from_onnx

    return from_onnx(path)


def _compile_file(path, target):
    """A model's file to an executable without the classes of programs: importing them takes longer
    than a small model takes that is found on disk."""
    build_file = tvm_ffi.get_global_func("driver.BuildModelFile")
    if target is not None and not isinstance(target, str):
        target = tvm.target.Target.canon_target(target)
    executable, complaints = build_file(path, target)
    for text in complaints:
        warnings.warn(f"from_onnx: {text}", stacklevel=3)
    return VMExecutable(executable)


def _program(mod, name=None):
    """The IRModule of what users pass: a PrimFunc, a module, a schedule, the path of a model."""
    if isinstance(mod, (str, os.PathLike)):
        return _model(os.fspath(mod))
    from tvm import ir, tir

    mod = getattr(mod, "mod", mod)  # a Schedule
    if isinstance(mod, tir.PrimFunc):
        symbol = name or mod.attrs.get("global_symbol") or "main"
        return ir.IRModule({symbol: mod.with_attr("global_symbol", symbol)})
    if not isinstance(mod, ir.IRModule):
        raise TypeError(
            "build: expected a PrimFunc, an IRModule or a Schedule, or the path of a model, got "
            f"{type(mod).__name__}"
        )
    if name is not None:
        functions = mod.get_global_vars()
        if len(functions) != 1:
            raise ValueError(
                f"build: expected one function for name='{name}', got {len(functions)}"
            )
        mod = mod.replace_global_vars({functions[0]: name})
    return mod


def build(
    mod: Program = None,
    target: TargetLike | None = None,
    pipeline: str | Pass | None = "default",
    *,
    input: Program = None,
    name: str | None = None,
) -> Module:
    """Compiles a PrimFunc, a module of them or a schedule to a module called like a function.

    Parameters
    ----------
    mod : PrimFunc, IRModule or Schedule; `input` is another spelling.
    target : str or Target; the current target, else this machine, if None.
    pipeline : the passes that lower the program: "default", a Pass, or None for the target's own.
    name : the name of the function, for a single one.
    """
    if (mod is None) == (input is None):
        raise TypeError("build: expected a program as `mod` (or `input`), once")
    return tvm.tir.build(_program(mod if input is None else input, name), target, pipeline)


def compile(
    mod: Program,
    target: TargetLike | None = None,
    *,
    relax_pipeline: str | Pass | Callable[..., Any] | None = "default",
    tir_pipeline: str | Pass | None = "default",
    explain: bool | str | os.PathLike[str] = False,
) -> Executable:
    """Compiles a program for a target.

    Kernels become an Executable, which is called like a function; graphs, and models in files, a
    VMExecutable, which relax.VirtualMachine runs. Both have `export_library`.

    Parameters
    ----------
    mod : PrimFunc, IRModule or Schedule, or the path of a model (.onnx, or .pt2 of torch.export)
    target : str or Target; the current target, else this machine, if None.
    relax_pipeline, tir_pipeline : the passes that lower graphs and kernels: "default", another name
        (relax.get_pipeline, tir.get_tir_pipeline), a Pass, or a function of a module.
    explain : prints a table of the kernels: calls, work, memory, rule of the schedule, its
        blocking, operators. With the path of a page (report.html), each kernel is also run on this
        machine, and the page shows their speed beside what the machine reaches.
    """
    is_default = relax_pipeline == tir_pipeline == "default" and not explain
    if isinstance(mod, (str, os.PathLike)) and is_default:
        return _compile_file(os.fspath(mod), target)
    from tvm import relax

    if not isinstance(explain, (bool, str, os.PathLike)):
        raise TypeError(
            f"compile: expected explain to be a bool or the path of a page, got {explain!r}"
        )
    if not isinstance(explain, bool) and not os.path.isdir(os.path.dirname(explain) or "."):
        raise FileNotFoundError(f"compile: the folder of explain='{explain}' does not exist")
    program = _program(mod)
    if explain:
        from tvm.relax.kernels import lower

        from .explain import kernels, table

        target = tvm.target.Target(target or tvm.target.Target.current() or "llvm")
        program = lower(program, target, relax_pipeline)
        relax_pipeline = None
        rows = kernels(program, target)
        if explain is not True:
            from .roofline import Machine, measure, page

            machine = Machine.measured(target)
            measure(rows, program, target, machine)
            with open(explain, "w", encoding="utf-8") as file:
                file.write(page(rows, machine))
        print(table(rows))
    if any(isinstance(func, relax.Function) for func in program.functions.values()):
        return relax.build(
            program, target, relax_pipeline=relax_pipeline, tir_pipeline=tir_pipeline
        )
    return Executable(tvm.tir.build(program, target, tir_pipeline))
