# SPDX-License-Identifier: Apache-2.0
"""Linking and compiling with a system compiler.

Exporting a library does not need one where libtvm_llvm is.
"""

import os
import shutil
import subprocess

import tvm_ffi

_CANDIDATES = ("g++", "gcc", "clang++", "clang", "c++", "cc")


def get_cc():
    """The C++ compiler of this machine (CXX and CC first), or None."""
    wanted = [os.environ[key] for key in ("CXX", "CC") if os.environ.get(key)]
    return next((found for name in (*wanted, *_CANDIDATES) if (found := shutil.which(name))), None)


def _as_list(value):
    return [] if value is None else [value] if isinstance(value, str) else list(value)


def _run(output, objects, options, cc, cwd, what):
    cc = cc or get_cc()
    if cc is None:
        raise RuntimeError(
            f"cannot {what} {output}: no C++ compiler found (looked for {', '.join(_CANDIDATES)}); "
            "install one, set CXX, or pass fcompile"
        )
    command = [cc, *options, "-o", str(output), *map(str, objects)]
    try:
        result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RuntimeError(f"cannot {what} {output}: {cc}: {error}") from error
    if result.returncode != 0:
        raise RuntimeError(
            f"cannot {what} {output}: `{' '.join(command)}` ended with {result.returncode}:\n"
            f"{result.stdout}{result.stderr}"
        )


def create_shared(output, objects, options=None, cc=None, cwd=None, ccache_env=None):
    """Compiles and links objects and sources into a shared library."""
    del ccache_env  # the compiler's own environment decides
    flags = ["-shared", "-fPIC", "-O2", *_as_list(options)]
    flags.append(f"-I{tvm_ffi.libinfo.find_include_path()}")
    _run(output, _as_list(objects), flags, cc, cwd, "link")


def create_executable(output, objects, options=None, cc=None, cwd=None, ccache_env=None):
    """Compiles and links objects and sources into a program."""
    del ccache_env
    _run(output, _as_list(objects), _as_list(options), cc, cwd, "link")


def cross_compiler(compile_func, options=None, output_format="so", get_target_triple=None):
    """`fcompile` for export_library out of a compiler's name (or a function) and fixed options."""
    base = _as_list(options)

    def fcompile(output, objects, options=None, **kwargs):
        if callable(compile_func):
            compile_func(output, objects, options=base + _as_list(options), **kwargs)
        else:
            create_shared(output, objects, base + _as_list(options), cc=compile_func, **kwargs)

    fcompile.output_format = output_format
    fcompile.get_target_triple = get_target_triple
    return fcompile


create_shared.output_format = "so"
create_executable.output_format = "exe"
