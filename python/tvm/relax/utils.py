# SPDX-License-Identifier: Apache-2.0
"""Conversions to expressions of the graph."""

import numpy as np
import tvm_ffi

from tvm.ir import PrimExpr
from tvm.runtime import Tensor

from . import expr as _expr


def convert_to_expr(value):
    """The expression that a Python value means: numbers and scalar expressions are PrimValues, texts
    StringImms, tuples and lists Tuples, arrays Constants."""
    from tvm.tir import StringImm as TirStringImm

    if isinstance(value, _expr.Expr):
        return value
    if isinstance(value, TirStringImm):
        raise TypeError("convert_to_expr: expected a text or relax.StringImm, got tir.StringImm")
    if isinstance(value, (bool, int, float, np.integer, np.floating, PrimExpr)):
        return _expr.PrimValue(value)
    if isinstance(value, str):
        return _expr.StringImm(value)
    if isinstance(value, (tuple, list, tvm_ffi.Array)):
        return _expr.Tuple([convert_to_expr(v) for v in value])
    if isinstance(value, (np.ndarray, Tensor)):
        return _expr.const(value)
    raise TypeError(
        f"convert_to_expr: expected an expression, a number, a text, an array or a tuple of them, "
        f"got {type(value).__name__}"
    )
