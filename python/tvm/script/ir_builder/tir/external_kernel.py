# SPDX-License-Identifier: Apache-2.0
"""Kernels that come compiled from elsewhere, called from a function of a module."""

from tvm import tir

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
    """CUDA source text."""

    def __init__(self, source_code):
        self.source_code = source_code

    def compile_to_device_module(self, grid, *args, **kwargs):
        raise NotImplementedError(
            "SourceKernel: expected the CUDA backend, which this version does not have; derive "
            "from BaseKernel and compile the kernel there"
        )


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
