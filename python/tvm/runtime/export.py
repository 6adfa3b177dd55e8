# SPDX-License-Identifier: Apache-2.0
"""Writing modules to files; C++ does it (driver/export.cc), users may link in their own way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import tvm_ffi

from tvm import _libs

_SOURCE = ("c", "cc", "cpp", "cu")
_LINK_OPTIONS = ("options", "cc", "cwd", "ccache_env")  # of tvm.support.cc.create_shared


def linker() -> Callable[..., Any] | None:
    """The built-in linker as `f(objects, output, options)`, or None in a build without one."""
    link = tvm_ffi.get_global_func("codegen.link_shared", allow_missing=True)
    if link is None and _libs.load_optional("tvm_llvm"):
        link = tvm_ffi.get_global_func("codegen.link_shared", allow_missing=True)
    return link


def link_shared(
    output: str | os.PathLike[str],
    files: Iterable[str | os.PathLike[str]],
    fcompile: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> None:
    """Links files into a shared library: with `fcompile`, the built-in linker, or a system
    compiler."""
    output, files = str(output), [str(f) for f in files]
    sources = [f for f in files if Path(f).suffix[1:] in _SOURCE]
    if fcompile is None and not sources and "cc" not in kwargs and (link := linker()):
        link(files, output, [str(option) for option in kwargs.get("options") or ()])
    elif fcompile is None:
        from tvm.support import cc

        cc.create_shared(output, files, **kwargs)
    else:
        fcompile(output, files, **kwargs)


def _merge(output, objects, fcompile, kwargs):
    """One object file of several."""
    if fcompile is None and linker():
        return tvm_ffi.get_global_func("codegen.link_relocatable")(objects, output)
    options = ["-r", "-nostdlib", *(kwargs.pop("options", None) or ())]
    if fcompile is not None:
        return fcompile(output, objects, options=options, **kwargs)
    from tvm.support import cc

    return cc.create_executable(output, objects, options, **kwargs)


def unarchive(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> list[Path]:
    """Extracts the objects of a static library."""
    extract = tvm_ffi.get_global_func("driver.ExtractStaticLibrary")
    return [Path(str(file)) for file in extract(str(path), str(folder))]


def export_library(
    mod: Any,
    file_name: str | os.PathLike[str],
    *,
    fcompile: Callable[..., Any] | None = None,
    addons: Sequence[str | os.PathLike[str]] | None = None,
    workspace_dir: str | os.PathLike[str] | None = None,
    params_file: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> str:
    """Writes a module with everything it imports; the suffix says as what (.so, .o, .a, .tar, .c).

    Beside .o, .a and .c it writes a C header of the same name. Modules of target c are compiled
    here, except for .c and .tar and for `fcompile`, which get their sources. A library that a
    process has loaded under this name stays as it is: the new file replaces it. `params_file` gets
    the large constants, as safetensors; it stays beside the library.
    """
    output = Path(os.fspath(file_name))
    if fcompile is None and (unknown := sorted(kwargs.keys() - set(_LINK_OPTIONS))):
        raise TypeError(
            f"export_library: expected options of the linker, {', '.join(_LINK_OPTIONS)}, "
            f"got {unknown[0]!r}"
        )
    if fcompile is not None and not output.suffix:
        output = output.with_suffix("." + getattr(fcompile, "output_format", "so"))

    def link(to, files, is_object):
        files = [str(f) for f in files]
        if is_object:
            _merge(str(to), files, fcompile, dict(kwargs))
        else:
            link_shared(str(to), files, fcompile, **kwargs)

    tvm_ffi.get_global_func("driver.ExportLibraryWith")(
        mod,
        str(output),
        [os.fspath(a) for a in addons or ()],
        "" if workspace_dir is None else os.fspath(workspace_dir),
        fcompile is not None,
        [],
        link,
        "" if params_file is None else os.fspath(params_file),
        fcompile is None and not kwargs and linker() is not None,
    )
    return str(output)
