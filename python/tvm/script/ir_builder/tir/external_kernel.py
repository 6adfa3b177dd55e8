# SPDX-License-Identifier: Apache-2.0
"""Kernels that come compiled from elsewhere, called from a function of a module."""

import re

import tvm_ffi

from tvm import tir
from tvm.target import Target

from ..base import IRBuilder
from ..ir import IRModuleFrame
from .ir import as_expr


class BaseKernel:
    """A kernel; a subclass says how it becomes a device module."""

    def compile_to_device_module(self, launch_args, *args, **kwargs):
        """(name of the function, runtime module with it, arguments of the call)"""
        raise NotImplementedError(
            f"{type(self).__name__}: expected a definition of compile_to_device_module"
        )


class SourceKernel(BaseKernel):
    """CUDA source text of one kernel."""

    def __init__(self, source_code):
        self.source_code = source_code

    def compile_to_device_module(self, grid, *args, **kwargs):
        """Compiles the text for the current target, or for the first GPU. The grid is the numbers
        of blocks and of threads, of up to three dimensions each: [[16, 2], [256]] or [16, 256]."""
        if kwargs:
            raise TypeError(f"SourceKernel: expected no further arguments, got {', '.join(kwargs)}")
        names = re.findall(r"__global__[\w\s]*?(?:\([^()]*\))?\s(\w+)\s*\(", self.source_code)
        if len(names) != 1:
            raise ValueError(
                f"SourceKernel: expected text with one __global__ function, got {len(names)}"
            )
        sizes = [list(part) if isinstance(part, list | tuple) else [part] for part in grid]
        if len(sizes) != 2 or not all(1 <= len(part) <= 3 for part in sizes):
            raise ValueError(
                "SourceKernel: expected [blocks, threads], of up to three dimensions each, as the "
                f"grid, got {grid}"
            )
        source = self.source_code
        if not re.search(r'extern\s*"C"', source):
            source = f'extern "C" {{\n{source}\n}}\n'
        values = [tir.const(a) if isinstance(a, int | float) else as_expr(a) for a in args]
        launch = [
            f"{index}.{axis}"
            for index, part in zip(("blockIdx", "threadIdx"), sizes, strict=True)
            for axis, _ in zip("xyz", part, strict=False)
        ]
        target = Target.current() or Target("cuda")
        module = tvm_ffi.get_global_func("cuda.module_from_source")(
            source, names[0], [str(v.dtype) for v in values], launch, target
        )
        return names[0], module, [*values, *sizes[0], *sizes[1]]


def call_kernel(kernel, launch_args, *args, **kwargs):
    """Calls a kernel; its device module becomes one of the module's external ones."""
    if isinstance(kernel, str):
        kernel = SourceKernel(kernel)
    if not isinstance(kernel, BaseKernel):
        raise TypeError(
            f"call_kernel: expected a BaseKernel or source text, got {type(kernel).__name__}"
        )
    frame = IRBuilder.current().find(IRModuleFrame)
    if frame is None:
        raise ValueError("call_kernel: expected to be inside a function of an I.ir_module")
    name, module, params = kernel.compile_to_device_module(launch_args, *args, **kwargs)
    frame.attrs["external_mods"] = [*frame.attrs.get("external_mods", []), module]
    return tir.call_packed(name, *(as_expr(p) for p in params))
