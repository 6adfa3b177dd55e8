# SPDX-License-Identifier: Apache-2.0
"""Parameters of tuned functions."""

import tvm_ffi

from tvm import _derive, tir


@_derive.register_node("meta_schedule.ArgInfo")
class ArgInfo(_derive.Node):
    """A parameter of the function that is tuned."""

    @staticmethod
    def from_json(json_obj):
        """Reads what as_json gave."""
        return tvm_ffi.get_global_func("meta_schedule._arg_info_from_json")(json_obj)

    @staticmethod
    def from_prim_func(func):
        """One per parameter of the function."""
        return list(tvm_ffi.get_global_func("meta_schedule._arg_info_from_prim_func")(func))

    @staticmethod
    def from_entry_func(mod, remove_preproc=True):
        """One per parameter of a module's entry; with `remove_preproc` as it is without the copies
        that RewriteLayout makes of weights: they come in the order in which they are read."""
        if remove_preproc:
            mod = tir.transform.RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(mod)
        return list(tvm_ffi.get_global_func("meta_schedule._arg_info_from_entry_func")(mod))


@_derive.register_node("meta_schedule.TensorInfo")
class TensorInfo(ArgInfo):
    """A tensor parameter: its dtype and shape."""

    def __init__(self, dtype, shape):
        _derive.construct(self, dtype, tvm_ffi.Shape(tuple(shape)))

    def __repr__(self):
        return f'TensorInfo("{self.dtype}", {list(self.shape)})'
