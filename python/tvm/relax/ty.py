# SPDX-License-Identifier: Apache-2.0
"""Static types."""

from tvm import ir
from tvm._derive import register_node
from tvm.ir import PrimExpr, PrimType, Type

from .expr import Expr, StructInfo
from .struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)


@register_node("relax.ShapeType")
class ShapeType(Type):
    pass


@register_node("relax.ObjectType")
class ObjectType(Type):
    pass


@register_node("relax.DynTensorType")
class TensorType(Type):
    pass


@register_node("relax.PackedFuncType")
class PackedFuncType(Type):
    pass


def info_of(static):
    """The struct info that says what a static type says."""
    if isinstance(static, PrimType):
        return PrimStructInfo(static.dtype)
    if isinstance(static, ShapeType):
        return ShapeStructInfo(ndim=static.ndim)
    if isinstance(static, TensorType):
        return TensorStructInfo(dtype=static.dtype, ndim=static.ndim)
    if isinstance(static, ir.TupleType):
        return TupleStructInfo([info_of(field) for field in static.fields])
    if isinstance(static, ir.FuncType):
        params = [info_of(param) for param in static.arg_types]
        return FuncStructInfo(params, info_of(static.ret_type))
    return ObjectStructInfo()


class TypeName:
    """A name for static types that since 0.27 means struct info, too: which one a call makes, its
    arguments say."""

    def __init__(self, static, info, *keywords):
        self._static, self._info, self._keywords = static, info, keywords
        self.__doc__ = info.__doc__

    def __call__(self, *args, **kwargs):
        made = self._static
        if not kwargs.keys().isdisjoint(self._keywords) or any(map(_says_info, args)):
            made = self._info
        return made(*args, **kwargs)

    def __instancecheck__(self, value):
        return isinstance(value, (self._static, self._info))

    def __repr__(self):
        return f"<{self._static.__name__} or {self._info.__name__}>"


def _says_info(value):
    """Struct info, an expression, or a list with one of them or a number in it."""
    if isinstance(value, (list, tuple)):
        return any(isinstance(v, (int, PrimExpr, StructInfo)) for v in value)
    return isinstance(value, (Expr, StructInfo))
