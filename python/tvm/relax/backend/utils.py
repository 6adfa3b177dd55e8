# SPDX-License-Identifier: Apache-2.0
"""Helpers for backends."""

from tvm.relax.expr_functor import PyExprMutator
from tvm.relax.struct_info import TensorStructInfo
from tvm.target import Target


class BackendDispatcher(PyExprMutator):
    """A mutator that chooses by the target: a base for passes in Python, with @mutator."""

    def __init__(self, mod):
        super().__init__(mod)

    @staticmethod
    def is_gpu_target(target):
        """Whether its programs run on a GPU."""
        return "gpu" in target.keys

    @staticmethod
    def get_shape_dtype(expr):
        """(shape, dtype) of a tensor whose shape is known."""
        info = expr.struct_info
        if not isinstance(info, TensorStructInfo) or info.shape is None:
            raise ValueError(f"expected a tensor whose shape is known, got {info}")
        return info.shape, info.dtype

    def _get_target(self, sinfo):
        """That of the virtual device of a tensor, or the current one."""
        device = getattr(sinfo, "vdevice", None)
        target = device.target if device is not None else Target.current(allow_none=True)
        if target is None:
            raise ValueError("expected a target in scope, or a tensor on a virtual device")
        return target


def has_leaking_intermediate_variables(context):
    """Whether a value inside of a match is used outside of it."""
    matched = set(context.matched_bindings)
    result = context.value_to_bound_var[context.matched_expr]
    return any(
        user not in matched
        for var in matched
        if not var.same_as(result)
        for user in context.var_usages[var]
    )
