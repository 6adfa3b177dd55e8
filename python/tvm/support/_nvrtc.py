# SPDX-License-Identifier: Apache-2.0
"""NVRTC and nvFatbin, through their C interfaces."""

import ctypes
import functools
from pathlib import Path

from . import _cuda_toolkit


class CompileError(Exception):
    """The compiler's log."""


@functools.cache
def _nvrtc():
    return _cuda_toolkit.load_library(
        "nvrtc", "install a CUDA toolkit or the wheel nvidia-cuda-nvrtc, or compile with nvcc"
    )


@functools.cache
def _nvfatbin():
    return _cuda_toolkit.load_library(
        "nvfatbin", "install a CUDA toolkit from 12.4 on or the wheel nvidia-nvfatbin, or use cubin"
    )


def _call(library, prefix, name, *args):
    code = getattr(library, prefix + name)(*args)
    if code != 0:
        text = getattr(library, f"{prefix}GetErrorString")
        text.restype = ctypes.c_char_p
        raise RuntimeError(f"{prefix}{name}: {(text(code) or b'').decode()} (error {code})")


def version():
    """(major, minor) of the library."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _call(_nvrtc(), "nvrtc", "Version", ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def folder():
    """Of the toolkit or wheel that the library belongs to."""
    return Path(_nvrtc()._name).parent.parent


class _Program:
    def __init__(self, code, name):
        self.handle = ctypes.c_void_p()
        self.call("CreateProgram", code.encode(), name.encode(), 0, None, None, create=True)

    def call(self, name, *args, create=False):
        handle = ctypes.byref(self.handle) if create else self.handle
        _call(_nvrtc(), "nvrtc", name, handle, *args)

    def text(self, what):
        size = ctypes.c_size_t()
        self.call(f"Get{what}Size", ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        self.call(f"Get{what}", data)
        return data.raw

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call("DestroyProgram", create=True)


def compile(code, name, target_format, options):
    """PTX or cubin of a program; CompileError holds what the compiler said."""
    with _Program(code, name) as program:
        words = (ctypes.c_char_p * len(options))(*(word.encode() for word in options))
        try:
            program.call("CompileProgram", len(options), words)
        except RuntimeError as error:
            log = program.text("ProgramLog").rstrip(b"\0\n").decode(errors="replace")
            raise CompileError(f"{error}\n{log}") from None
        data = program.text({"ptx": "PTX", "cubin": "CUBIN"}[target_format])
        return data.rstrip(b"\0") if target_format == "ptx" else data


def fatbin(cubins):
    """One fatbin out of {architecture: cubin}."""
    library, handle = _nvfatbin(), ctypes.c_void_p()
    call = functools.partial(_call, library, "nvFatbin")
    call("Create", ctypes.byref(handle), None, ctypes.c_size_t(0))
    try:
        for arch, cubin in cubins.items():
            number = arch.partition("_")[2].encode()
            call("AddCubin", handle, cubin, ctypes.c_size_t(len(cubin)), number, b"")
        size = ctypes.c_size_t()
        call("Size", handle, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        call("Get", handle, data)
        return data.raw
    finally:
        call("Destroy", ctypes.byref(handle))
