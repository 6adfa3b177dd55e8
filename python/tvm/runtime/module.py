# SPDX-License-Identifier: Apache-2.0
"""Modules: calling, loading, exporting, timing."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tvm_ffi
from tvm_ffi import Module as _Module

from tvm import _libs

from .device import device as _device

_get_function = tvm_ffi.get_global_func("runtime.ModuleGetFunction")
_entry_function = tvm_ffi.get_global_func("runtime.ModuleEntryFunction")
_function_names = tvm_ffi.get_global_func("runtime.ModuleFunctionNames")
_load = tvm_ffi.get_global_func("runtime.LoadModule")
_load_bytes = tvm_ffi.get_global_func("runtime.LoadModuleFromBytes")
_load_static = tvm_ffi.get_global_func("runtime.LoadStaticLibrary")
_time_evaluator = tvm_ffi.get_global_func("runtime.TimeEvaluator")
_keep = tvm_ffi.get_global_func("ffi.ModuleGlobalsAdd")


class BenchmarkResult:
    """Seconds of one call, measured several times: `results`, and their mean, median, min, max,
    std."""

    def __init__(self, results: Iterable[float]) -> None:
        self.results = tuple(map(float, results))
        ordered, n = sorted(self.results), len(self.results)
        self.min, self.max = ordered[0], ordered[-1]
        self.mean = math.fsum(ordered) / n
        self.median = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
        self.std = math.sqrt(math.fsum((r - self.mean) ** 2 for r in ordered) / n)

    def __repr__(self):
        fields = ", ".join(
            f"{n}={getattr(self, n)}" for n in ("min", "mean", "median", "max", "std")
        )
        return f"BenchmarkResult({fields}, results={self.results})"

    def __str__(self):
        scale, unit = next(
            ((s, u) for s, u in ((1, "s"), (1e-3, "ms"), (1e-6, "us")) if self.median >= s),
            (1e-9, "ns"),
        )
        names = ("mean", "median", "max", "min", "std")
        head = "".join(f"{n + ' (' + unit + ')':^14}" for n in names)
        values = "".join(f"{getattr(self, n) / scale:^14.4f}" for n in names)
        return f"Execution time summary:\n{head.rstrip()}\n{values.rstrip()}"


class Module(_Module):
    """Compiled functions and the modules they import.

    Called like a function it runs `main`, or its only function.
    """

    __slots__ = ()

    def __call__(self, *args):
        try:
            entry = self.__dict__["_entry"]
        except KeyError:
            entry = self.__dict__["_entry"] = _entry_function(self)
        return entry(*args)

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        function = _get_function(self, name, False)
        self.__dict__[name] = function
        return function

    def get_function(self, name: str, query_imports: bool = False) -> tvm_ffi.Function:
        """The function of a name, also of imported modules if asked."""
        return _get_function(self, name, query_imports)

    def __getitem__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"module: expected a function's name, got {type(name).__name__}")
        return _get_function(self, name, False)

    def function_names(self) -> list[str]:
        """Names of the functions, where the module can list them."""
        return [str(name) for name in _function_names(self)]

    def get_source(self, fmt: str = "") -> str:
        """The source or assembly, as inspect_source."""
        return self.inspect_source(fmt)

    @property
    def type_key(self) -> str:
        """As `kind`."""
        return str(self.kind)

    @property
    def entry_func(self) -> tvm_ffi.Function:
        """What calling the module runs."""
        return _entry_function(self)

    @property
    def imported_modules(self) -> list[Module]:
        """As `imports`."""
        return list(self.imports)

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Writes the module alone, in a format of its own, as write_to_file."""
        self.write_to_file(os.fspath(file_name), fmt)

    def export_library(
        self,
        file_name: str | os.PathLike[str],
        *,
        fcompile: Callable[..., Any] | None = None,
        fpack_imports: None = None,
        addons: Sequence[str | os.PathLike[str]] | None = None,
        workspace_dir: str | os.PathLike[str] | None = None,
        params_file: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> str:
        """Writes the module with everything it imports.

        The suffix says as what: .so, .o, .a, .tar, .c. `fcompile(output, files, **kwargs)` links;
        without it the built-in linker does, or a system compiler where this build has none.
        `addons` are further files to link. `params_file`, in the same folder, gets the large
        constants as safetensors; loading the library maps it.
        """
        from .export import export_library

        if fpack_imports is not None:
            raise NotImplementedError("export_library: fpack_imports is not supported; use addons")
        return export_library(
            self,
            file_name,
            fcompile=fcompile,
            addons=addons,
            workspace_dir=workspace_dir,
            params_file=params_file,
            **kwargs,
        )

    def time_evaluator(
        self,
        func_name: str | None,
        dev: Any,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
        f_preproc: str = "",
    ) -> Callable[..., BenchmarkResult]:
        """A function that measures `func_name` on its arguments and returns a BenchmarkResult.

        It holds the seconds of one call for each of `repeat` rounds of `number` calls. A round
        that takes less than `min_repeat_ms` runs again with more calls.
        """
        if not func_name or func_name == self.entry_name:
            function = _entry_function(self)
        else:
            function = self.get_function(func_name, True)
        evaluate = _time_evaluator(
            function,
            _device(dev),
            number,
            repeat,
            min_repeat_ms,
            limit_zero_time_iterations,
            cooldown_interval_ms,
            repeats_to_cooldown,
            cache_flush_bytes,
            f_preproc,
        )
        return lambda *args: BenchmarkResult(evaluate(*args))


tvm_ffi.register_object("ffi.Module")(Module)


def load_module(
    path: str | os.PathLike[str] | bytes | bytearray | memoryview, fmt: str = ""
) -> Module:
    """Loads a module from a file (.so, .o, .a, .tar, .ll, .bc) or the bytes of a shared library."""
    if isinstance(path, (bytes, bytearray, memoryview)):
        mod = _load_bytes(bytes(path))
    else:
        path = os.fspath(path)
        suffix = "." + fmt if fmt else os.path.splitext(path)[1]
        if suffix in (".o", ".obj", ".a", ".tar"):
            return _load_linked(path, suffix)
        if suffix in (".ll", ".bc"):
            return _load_ir(path)
        if suffix in (".so", ".dylib", ".dll", ".dso", ""):
            mod = _load(path)
        else:  # another kind of module
            loader = f"ffi.Module.load_from_file.{suffix[1:]}"
            if tvm_ffi.get_global_func(loader, allow_missing=True) is None:
                raise ValueError(
                    "load_module: expected a file that ends in .so, .o, .a, .tar, .ll or .bc, got "
                    f"{path!r}, and no function {loader} is registered"
                )
            return tvm_ffi.load_module(path)
    # Objects it made may outlive the last reference to the module; their deleters are its code.
    _keep(mod)
    return mod


def _load_ir(path):
    """IR of LLVM becomes an object, which is linked and loaded."""
    import tempfile

    if not os.path.exists(path):
        raise FileNotFoundError(f"no such file: {path}")
    if not _libs.load_optional("tvm_llvm"):
        raise RuntimeError(f"load_module: expected the LLVM backend, to compile {path}")
    with tempfile.TemporaryDirectory(prefix="tvm-") as folder:
        made = os.path.join(folder, "compiled.o")
        with open(made, "wb") as file:
            file.write(tvm_ffi.get_global_func("runtime._llvm_object")(path))
        return _load_linked(made, ".o")


def _load_linked(path, suffix):
    """Objects become a temporary shared library, which is loaded."""
    import tempfile

    from .export import link_shared, unarchive

    if not os.path.exists(path):
        raise FileNotFoundError(f"no such file: {path}")
    with tempfile.TemporaryDirectory(prefix="tvm-") as folder:
        files = [path]
        if suffix == ".tar":
            from tvm.support.tar import untar

            untar(path, folder)
            below = (os.path.join(f, name) for f, _, names in os.walk(folder) for name in names)
            files = sorted(below)
        elif suffix == ".a":
            files = unarchive(path, folder)
        files = [file for file in files if not str(file).endswith(".h")]
        library = os.path.join(folder, "linked.so")
        link_shared(library, files)
        return load_module(library)


def load_static_library(path: str | os.PathLike[str], func_names: Iterable[str]) -> Module:
    """An object file or archive that is linked when the module that imports it is exported."""
    return _load_static(os.fspath(path), list(func_names))


def enabled(target: Any) -> bool:
    """Whether this build can compile for (or run on) a target."""
    name = str(target).split(" ")[0]
    if name in ("cpu", "c", "stackvm"):
        return True
    if name == "llvm":
        return _libs.find("tvm_llvm") is not None
    try:
        return bool(_device(name).exist)
    except ValueError:
        return False
