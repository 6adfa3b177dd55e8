# SPDX-License-Identifier: Apache-2.0
"""Conversions to expressions of the graph."""

import numpy as np
import tvm_ffi

from tvm.ir import PrimExpr
from tvm.runtime import Tensor

from . import expr as _expr


def convert_to_expr(value):
    """The expression that a Python value means: numbers and scalar expressions are PrimValues,
    texts StringImms, tuples and lists Tuples, arrays Constants."""
    if isinstance(value, _expr.Expr):
        return value
    from tvm.tir import StringImm as TirStringImm

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


def gen_call_tir_inputs(func, *args, **kwargs):
    """Calls `func`, which makes tensor expressions, with placeholders for the arguments:
    (PrimFunc, tuple of arguments, struct info of the outputs, symbolic variables or None)."""
    from tvm import te

    attrs = kwargs.pop("primfunc_attrs", None) or {}
    inputs = _new_te_arguments()
    args = [_te_argument(inputs, value) for value in args]
    kwargs = {name: _te_argument(inputs, value) for name, value in kwargs.items()}
    result = func(*args, **kwargs)
    outputs = result if isinstance(result, (list, tuple, tvm_ffi.Array)) else [result]
    for output in outputs:
        if not isinstance(output, te.Tensor):
            raise TypeError(
                f"call_te: expected a tensor or several from '{getattr(func, '__name__', func)}', "
                f"got {type(output).__name__}"
            )
    prim_func, tensors, infos, tir_vars = inputs.finish(outputs, attrs)
    infos = list(infos)
    return prim_func, tensors, infos[0] if len(infos) == 1 else infos, tir_vars


def _new_te_arguments():
    return tvm_ffi.get_global_func("relax.TEArguments._create")()


def _te_argument(inputs, value):
    """What a tensor expression gets for an argument of a graph's operator."""
    if isinstance(value, _expr.Expr):
        return _te_expr(inputs, value)
    if isinstance(value, PrimExpr):
        return inputs.inside(value)
    if isinstance(value, (list, tuple, tvm_ffi.Array)):
        return [_te_argument(inputs, v) for v in value]
    if isinstance(value, (dict, tvm_ffi.Map)):
        return {k: _te_argument(inputs, v) for k, v in value.items()}
    return value


def _te_expr(inputs, expr):
    if isinstance(expr, (_expr.StringImm, _expr.DataTypeImm)):
        return expr.value
    if isinstance(expr, _expr.Tuple):
        return [_te_expr(inputs, field) for field in expr.fields]
    info = expr.struct_info
    kind = type(info).__name__
    if kind == "TupleStructInfo":
        return [_te_expr(inputs, _expr.TupleGetItem(expr, i)) for i in range(len(info.fields))]
    if kind == "ShapeStructInfo":
        return list(inputs.shape(expr))
    return inputs.scalar(expr) if kind == "PrimStructInfo" else inputs.tensor(expr)


def copy_with_new_vars(func):
    """The function with new variables, symbolic ones included."""
    return tvm_ffi.get_global_func("relax.CopyWithNewVars")(func)


def metadata_partitioner(rx_txt):
    """Cuts a printed program into its text and its metadata sections."""
    parts = [[]]
    for line in rx_txt.split("\n"):
        if line.startswith("# Metadata omitted") or line.startswith("metadata = "):
            parts.append([])
        parts[-1].append(line)
    return ["\n".join(part) for part in parts]
