# SPDX-License-Identifier: Apache-2.0
"""Functions that programs of tests call by name, test.vm.*, and a call through a saved closure."""

import tvm_ffi

from tvm.tir import IntImm


def _function(name):
    return tvm_ffi.get_global_func(f"test.vm.{name}")


move = _function("move")
add = _function("add")
mul = _function("mul")
equal_zero = _function("equal_zero")
subtract_one = _function("subtract_one")
identity_packed = _function("identity")
tile_packed = _function("tile")
add_scalar = _function("add_scalar")
get_device_id = _function("get_device_id")


@tvm_ffi.register_global_func("test.vm.check_if_defined", override=True)
def check_if_defined(obj):
    """Whether something was given."""
    return IntImm("bool", obj is not None)


def check_saved_func(vm, func_name, *inputs):
    """The result of a function by way of save_function."""
    saved = f"{func_name}_saved"
    vm.save_function(func_name, saved, *inputs)
    return vm[saved]()
