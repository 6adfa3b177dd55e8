# SPDX-License-Identifier: Apache-2.0
"""The virtual machine that runs compiled graphs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm_ffi

from tvm.error import TVMError

from ._tensor import tensor as _tensor
from .device import device as _device
from .executable import Executable
from .profiling import Report

if TYPE_CHECKING:
    from .module import BenchmarkResult


@tvm_ffi.register_global_func("runtime.write_stdout")
def _write_stdout(text):
    """What programs print goes where Python prints, which may be a notebook."""
    sys.stdout.write(text)


class VMInstrumentReturnKind(IntEnum):
    """What an instrument wants: run the call, or leave it out."""

    NO_OP = 0
    SKIP_RUN = 1


@tvm_ffi.register_error
class VMStateError(TVMError, ValueError):
    """A virtual machine was asked for inputs or outputs that it does not have, or called past
    them."""


class VMExecutable(Executable):
    """A program of the virtual machine with the compiled functions it calls."""

    def stats(self) -> str:
        """Constants and functions of the program, as text."""
        return str(self.mod["stats"]())

    def as_text(self) -> str:
        """The instructions, as text."""
        return str(self.mod["as_text"]())

    def as_python(self) -> str:
        """A Python program that builds the instructions again with an ExecBuilder."""
        return str(self.mod["as_python"]())


class VirtualMachine:
    """Runs a VMExecutable on one or several devices.

    The functions of the program are `vm["name"]`; they take tensors of any framework without
    copying and may be called from several threads at once. `memory_cfg` is "pooled" (the default),
    "naive", or a dictionary from devices to these words. `profile=True` makes `profile` work.
    """

    NAIVE_ALLOCATOR = 1
    POOLED_ALLOCATOR = 2

    def __init__(
        self,
        rt_mod: Executable | tvm_ffi.Module,
        device: Any,
        memory_cfg: str | Mapping[Any, str] | None = None,
        profile: bool = False,
    ) -> None:
        if isinstance(rt_mod, Executable):
            rt_mod = rt_mod.jit()
        if not isinstance(rt_mod, tvm_ffi.Module):
            raise TypeError(
                "VirtualMachine: expected a graph that was compiled (by tvm.compile) or loaded (by "
                f"tvm.runtime.load_module), got {type(rt_mod).__name__}"
            )
        loader = "vm_profiler_load_executable" if profile else "vm_load_executable"
        self.module = rt_mod[loader]()
        self._functions = {}
        devices = device if isinstance(device, (list, tuple)) else [device]
        arguments = []
        for dev in map(_device, devices):
            kind = self._allocator(dev, memory_cfg)
            arguments += [dev.dlpack_device_type(), dev.index, kind]
        self.module["vm_initialization"](*arguments)

    def _allocator(self, dev, memory_cfg):
        kinds = {"naive": self.NAIVE_ALLOCATOR, "pooled": self.POOLED_ALLOCATOR}
        name = "pooled" if memory_cfg is None else memory_cfg
        if isinstance(memory_cfg, dict):
            given = {_device(key): value for key, value in memory_cfg.items()}
            name = next((value for key, value in given.items() if key == dev), "naive")
        if not isinstance(name, str):
            raise TypeError(
                "VirtualMachine: expected memory_cfg to be a str or a dict from devices to str, "
                f"got {type(name).__name__}"
            )
        if name not in kinds:
            raise ValueError(
                f"VirtualMachine: expected memory_cfg 'naive' or 'pooled', got {name!r}"
            )
        return kinds[name]

    def __getitem__(self, key):
        try:
            return self._functions[key]
        except KeyError:
            function = self._functions[key] = self.module[key]
            return function

    def get_state(self, name: str) -> Any:
        """What the program keeps under a name from call to call (a buffer that an imported model
        changes), or None before the first change."""
        return self["get_state"](name)

    def set_state(self, name: str, value: Any) -> None:
        """Sets what the program keeps under a name to a copy of a tensor."""
        self["set_state"](name, value)

    def invoke_closure(self, closure: Any, *args: Any) -> Any:
        """Calls a closure that a function returned."""
        return self["invoke_closure"](closure, *args)

    def save_function(
        self,
        func_name: str,
        saved_name: str,
        *args: Any,
        include_return: bool = True,
        **kwargs: Any,
    ) -> None:
        """Keeps a call with its arguments as a function without parameters.

        With `include_return=False` it returns None.
        """
        args = self._positional(func_name, args, kwargs)
        self["save_function"](func_name, saved_name, include_return, *args)
        self._functions.pop(saved_name, None)

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Keeps the arguments of a function, by position or name, for invoke_stateful.

        They are moved to the first device.
        """
        args = self._positional(func_name, args, kwargs)
        args = [_tensor(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        if args and isinstance(args[-1], tvm_ffi.Module):
            self["set_input_with_param_module"](func_name, *args)
        else:
            self["set_input"](func_name, *args)

    def _positional(self, func_name, args, kwargs):
        """All arguments in the order of the parameters."""
        if not kwargs:
            return list(args)
        count = self["get_function_arity"](func_name)
        names = [str(self["get_function_param_name"](func_name, i)) for i in range(count)]
        unknown = sorted(set(kwargs) - set(names[len(args) :]))
        if unknown:
            raise ValueError(
                f"{func_name}: expected parameters {names[len(args) :]} by name, got {unknown}"
            )
        missing = [name for name in names[len(args) :] if name not in kwargs]
        if missing:
            raise ValueError(f"{func_name}: no argument for parameters {missing}")
        return [*args, *(kwargs[name] for name in names[len(args) :])]

    def invoke_stateful(self, func_name: str) -> None:
        """Calls a function with the arguments of set_input and keeps its result."""
        self["invoke_stateful"](func_name)

    def get_outputs(self, func_name: str) -> Any:
        """The result of invoke_stateful: a value, or a (nested) tuple of values."""
        return self._output(func_name, ())

    def _output(self, func_name, path):
        count = self["get_output_arity"](func_name, *path)
        if count < 0:
            return self["get_output"](func_name, *path)
        return tuple(self._output(func_name, (*path, i)) for i in range(count))

    def set_instrument(self, instrument: Callable[..., Any] | str | None) -> None:
        """Has `instrument(func, name, before_run, ret_value, *args)` called before and after each
        call of the program.

        VMInstrumentReturnKind.SKIP_RUN, returned before, leaves the call out. It may be the name of
        a global function; None removes it.
        """
        self["set_instrument"](instrument)

    def time_evaluator(
        self,
        func_name: str,
        dev: Any,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        f_preproc: str = "",
    ) -> Callable[..., BenchmarkResult]:
        """A function that measures `func_name` on its arguments, as Module.time_evaluator."""
        return self.module.time_evaluator(
            func_name,
            dev,
            number=number,
            repeat=repeat,
            min_repeat_ms=min_repeat_ms,
            cooldown_interval_ms=cooldown_interval_ms,
            repeats_to_cooldown=repeats_to_cooldown,
            f_preproc=f_preproc,
        )

    def profile(self, func_name: str, *args: Any) -> Report:
        """Runs a function and returns the time of each call in it as a profiling.Report."""
        try:
            run = self["profile"]
        except AttributeError:
            raise RuntimeError("profile: make the VirtualMachine with profile=True") from None
        return Report.from_json(str(run(func_name, *args)))


__all__ = ["VMExecutable", "VMInstrumentReturnKind", "VMStateError", "VirtualMachine"]
