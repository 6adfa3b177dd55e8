# SPDX-License-Identifier: Apache-2.0
"""The graph language. What has no Python behaviour derives from the registry."""

import importlib

from tvm import ir
from tvm._derive import fill
from tvm.ir import GlobalVar, Span, Type
from tvm.runtime.vm import VirtualMachine, VMExecutable, VMInstrumentReturnKind

from . import expr, struct_info, ty, utils
from .expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    Id,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    StructInfo,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    const,
    extern,
    get_shape_of,
    prim_value,
)
from .struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from .ty import ObjectType, PackedFuncType, TypeName
from .utils import convert_to_expr

TensorType = TypeName(ty.TensorType, TensorStructInfo, "shape", "vdevice")
ShapeType = TypeName(ty.ShapeType, ShapeStructInfo, "values")
TupleType = TypeName(ir.TupleType, TupleStructInfo)
FuncType = TypeName(ir.FuncType, FuncStructInfo, "params", "ret", "purity")
_derived, _names = fill(__name__)

# name -> the module it is defined in; imported on first use
_MOVED = {
    "BasePyModule": "base_py_module",
    "BlockBuilder": "block_builder",
    "build": "vm_build",
    "ExecBuilder": "exec_builder",
    "ExprFunctor": "expr_functor",
    "PyExprVisitor": "expr_functor",
    "PyExprMutator": "expr_functor",
    "DataflowBlockRewrite": "binding_rewrite",
    "args_converter": "type_converter",
    "get_default_pipeline": "pipeline",
    "get_pipeline": "pipeline",
    "register_pipeline": "pipeline",
    "call_tir": "op",
    "call_tir_inplace": "op",
    "call_tir_with_grad": "op",
    "call_pure_packed": "op",
    "call_dps_packed": "op",
}


def __getattr__(name):
    if name in _MOVED:
        value = getattr(importlib.import_module(f"{__name__}.{_MOVED[name]}"), name)
        globals()[name] = value
        return value
    return _derived(name)


def __dir__():
    return sorted({*_names(), *_MOVED})
