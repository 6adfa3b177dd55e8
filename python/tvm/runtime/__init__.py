# SPDX-License-Identifier: Apache-2.0
"""Devices, tensors, modules: what a compiled program needs to run."""

from tvm import _aliases, _derive

from ._tensor import Tensor, empty, from_dlpack, tensor
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
    "vpi",
    "vulkan",
    "webgpu",
]

_alias, _alias_names = _aliases.fill(__name__)
_derived, _derived_names = _derive.fill(__name__)


def __getattr__(name):
    try:
        return _derived(name)
    except AttributeError:
        return _alias(name)


def __dir__():
    return sorted({*_alias_names(), *_derived_names()})
