# SPDX-License-Identifier: Apache-2.0
"""Operators of the graph: functions that make calls of them, derived from their definitions."""

import sys
import types

import tvm_ffi
from tvm._derive import fill
from tvm.ir import register_op_attr
from tvm.runtime import Device
from tvm.tir import IndexMap

from .run import (
    numpy_nonzero,
    numpy_unique,
    relax_assert_op,
    relax_print,
    relax_shape_to_tensor,
    render_object,
)

_derived, __dir__ = fill(__name__)
_list_functions = tvm_ffi.get_global_func("ir.ListFunctions")

# The groups are modules: tvm.relax.op.nn.conv2d.
_GROUPS = "builtin ccl distributed grad image inspect memory nn vision vm".split()


def _group(name):
    full_name = f"{__name__}.{name}"
    module = types.ModuleType(full_name, f"Operators of the group `{name}`.")
    module.__getattr__, module.__dir__ = fill(full_name)
    sys.modules[full_name] = module
    return module


globals().update((name, _group(name)) for name in _GROUPS)


def __getattr__(name):
    try:
        return _derived(name)
    except AttributeError:  # operators that a user defined may have a group of their own
        if not _list_functions(f"relax.op.{name}."):
            raise
    module = globals()[name] = _group(name)
    return module


def layout_transform(
    x, index_map, pad_value=None, axis_separators=None, input_axis_separators=None
):
    """The elements where the index map, or a function of indices, puts them."""
    if not isinstance(index_map, IndexMap):
        index_map, separators = IndexMap.from_func_with_separators(index_map)
        axis_separators = axis_separators or separators or None
    return _derived("layout_transform")(
        x, index_map, pad_value, axis_separators, input_axis_separators
    )


def hint_on_device(data, dst_vdevice, memory_scope="global"):
    """The tensor, which shall be on that device."""
    device = dst_vdevice if isinstance(dst_vdevice, Device) else Device(*dst_vdevice)
    make = _derived("hint_on_device")
    return make(data, int(device.dlpack_device_type()), device.index, memory_scope)


def register_gradient(op_name, fgradient=None, level=10):
    """Registers `fgradient(orig_var, orig_call, output_grad, ctx)`, which gives the gradients of
    the arguments; without it, a decorator."""
    return register_op_attr(op_name, "FPrimalGradient", fgradient, level)
