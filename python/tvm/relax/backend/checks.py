# SPDX-License-Identifier: Apache-2.0
"""Checks that vendors' tables of patterns have in common."""

from tvm.relax.transform import FuseOpsByPattern
from tvm.tir import IntImm

from .pattern_registry import get_patterns_with_prefix, register_patterns
from .patterns import make_matmul_pattern
from .utils import has_leaking_intermediate_variables


def static(expr):
    """The dimensions of a tensor as numbers, None for those that are not known."""
    shape = expr.struct_info.shape
    values = getattr(shape, "values", None)
    return values and [int(d) if isinstance(d, IntImm) else None for d in values]


def dtype_of(expr):
    return str(expr.struct_info.dtype)


def matmul_check(dtypes):
    """Accepts products of tensors of one of the dtypes whose matrices have known sizes, batches
    that need no broadcast beyond a matrix, and a bias of one row."""

    def check(context):
        if has_leaking_intermediate_variables(context):
            return False
        parts = context.annotated_expr
        lhs, rhs = parts["lhs"], parts["rhs"]
        left, right = static(lhs), static(rhs)
        if dtype_of(lhs) != dtype_of(rhs) or dtype_of(lhs) not in dtypes:
            return False
        if left is None or right is None or len(left) < 2 or len(right) < 2:
            return False
        if None in (left[-1], *right[-2:]):
            return False
        batch_of_matrices = len(right) == 2 or left[:-2] == right[:-2]
        bias = static(parts["bias"]) if "bias" in parts else [1]
        return batch_of_matrices and bias is not None and all(d == 1 for d in bias[:-1])

    return check


def matmul_patterns(prefix, dtypes, activations=("relu", "gelu")):
    """`prefix`.matmul, .matmul_bias, .matmul_bias_relu, …, and the same with a transposed right
    operand."""
    rows = []
    for name, transposed in (("matmul", False), ("matmul_transposed", True)):
        forms = [("", False, None), ("_bias", True, None)]
        forms += [(f"_bias_{a}", True, f"relax.nn.{a}") for a in activations]
        for suffix, bias, activation in forms:
            pattern = make_matmul_pattern(bias, activation, transposed)
            rows.append((f"{prefix}.{name}{suffix}", *pattern, matmul_check(dtypes)))
    return rows


def partition(mod, prefix, **options):
    """The module with what matches the patterns of the prefix cut out for that backend."""
    return FuseOpsByPattern(get_patterns_with_prefix(prefix), **options)(mod)


__all__ = [
    "dtype_of",
    "matmul_check",
    "matmul_patterns",
    "partition",
    "register_patterns",
    "static",
]
