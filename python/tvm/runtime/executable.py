# SPDX-License-Identifier: Apache-2.0
"""What the compiler hands out: a module that is made runnable on first use."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from .module import Module, load_module


class Executable:
    """A compiled module.

    Indexing and calling make it runnable first where it still is source code.
    """

    def __init__(self, mod: Module) -> None:
        self.mod = mod
        self._jitted: Module | None = None

    def __getitem__(self, name):
        return self.jit()[name]

    def __call__(self, *args, **kwargs):
        if kwargs:
            raise TypeError(f"executable: expected positional arguments, got {sorted(kwargs)}")
        return self.jit()(*args)

    def __getattr__(self, name):
        if name[:1] == "_" or "mod" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.jit(), name)

    def __reduce__(self):
        raise TypeError(
            f"{type(self).__name__}: cannot be pickled; export_library writes it to a file, which "
            "tvm.runtime.load_module reads in another process"
        )

    def jit(
        self,
        *,
        fcompile: Callable[..., Any] | None = None,
        addons: Sequence[str | os.PathLike[str]] | None = None,
        force_recompile: bool = False,
        **kwargs: Any,
    ) -> Module:
        """The runnable module; code that is not runnable yet is compiled into a temporary library
        and loaded."""
        if self._jitted is not None and not force_recompile:
            return self._jitted
        if fcompile is None and not addons and not force_recompile and self._runs():
            self._jitted = self.mod
        else:
            import tempfile

            with tempfile.TemporaryDirectory(prefix="tvm-") as folder:
                path = os.path.join(folder, "jit.so")
                self.mod.export_library(path, fcompile=fcompile, addons=addons, **kwargs)
                self._jitted = load_module(path)
        return self._jitted

    def _runs(self):
        pending, seen = [self.mod], []
        while pending:
            mod = pending.pop()
            if not mod.is_runnable() and mod.is_compilation_exportable():
                return False
            seen.append(mod)
            pending += [m for m in mod.imports if not any(m.same_as(s) for s in seen)]
        return True

    def export_library(
        self,
        file_name: str | os.PathLike[str],
        *,
        fcompile: Callable[..., Any] | None = None,
        addons: Sequence[str | os.PathLike[str]] | None = None,
        workspace_dir: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> str:
        """Writes the module with everything it imports, as Module.export_library."""
        return self.mod.export_library(
            file_name, fcompile=fcompile, addons=addons, workspace_dir=workspace_dir, **kwargs
        )
