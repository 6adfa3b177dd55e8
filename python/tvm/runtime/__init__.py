# SPDX-License-Identifier: Apache-2.0
"""Devices, tensors, modules: what a compiled program needs to run."""

from tvm._derive import fill

from . import vm
from ._tensor import StringTensor, Tensor, empty, from_dlpack, tensor
from .device import (
    Device,
    cpu,
    cuda,
    device,
    ext_dev,
    hexagon,
    metal,
    opencl,
    rocm,
    vpi,
    vulkan,
    webgpu,
)
from .executable import Executable
from .module import BenchmarkResult, Module, enabled, load_module, load_static_library
from .params import (
    load_param_dict,
    load_param_dict_from_file,
    save_param_dict,
    save_param_dict_to_file,
)

__all__ = [
    "BenchmarkResult",
    "Device",
    "Executable",
    "Module",
    "StringTensor",
    "Tensor",
    "cpu",
    "cuda",
    "device",
    "empty",
    "enabled",
    "ext_dev",
    "from_dlpack",
    "hexagon",
    "load_module",
    "load_param_dict",
    "load_param_dict_from_file",
    "load_static_library",
    "metal",
    "opencl",
    "rocm",
    "save_param_dict",
    "save_param_dict_to_file",
    "tensor",
    "vm",
    "vpi",
    "vulkan",
    "webgpu",
]

__getattr__, __dir__ = fill(__name__)
