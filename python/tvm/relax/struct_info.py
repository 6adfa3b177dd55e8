# SPDX-License-Identifier: Apache-2.0
"""Struct info: what is known about the values of an expression."""

from tvm._derive import construct, register_node
from tvm.ir import EnvFunc, PrimExpr, VDevice

from .expr import Expr, ShapeExpr, StructInfo, _prim


@register_node("relax.ObjectStructInfo")
class ObjectStructInfo(StructInfo):
    pass


@register_node("relax.PrimStructInfo")
class PrimStructInfo(StructInfo):
    def __init__(self, dtype=None, value=None, span=None):
        if dtype is None and value is None:
            raise TypeError("PrimStructInfo: expected a dtype or a value, got neither")
        if value is not None and not isinstance(value, PrimExpr):
            value = _prim(value)
        construct(self, "" if dtype is None else dtype, value, span)


@register_node("relax.ShapeStructInfo")
class ShapeStructInfo(StructInfo):
    def __init__(self, values=None, ndim=-1, span=None):
        if values is not None and ndim != -1:
            raise ValueError(
                f"ShapeStructInfo: expected values or ndim, got values {list(values)} and "
                f"ndim {ndim}"
            )
        construct(self, None if values is None else list(values), ndim, span)


@register_node("relax.TensorStructInfo")
class TensorStructInfo(StructInfo):
    """What is known of a tensor.

    Parameters
    ----------
    shape : integers, tir.Var(name, "int64") and expressions of them; None where it is not known.
    dtype : the name of a type; "" where it is not known.
    vdevice : the relax.VDevice it is on.
    ndim : the number of dimensions where the shape is not known; -1: not known either.
    """

    def __init__(self, shape=None, dtype="float32", vdevice=None, ndim=-1, span=None):
        if shape is not None and ndim != -1:
            raise ValueError(
                f"TensorStructInfo: expected a shape or ndim, got shape {shape} and ndim {ndim}"
            )
        if shape is not None and not isinstance(shape, Expr):
            shape = ShapeExpr(shape)
        if isinstance(vdevice, str):
            vdevice = _vdevice(vdevice)
        construct(self, shape, "" if dtype is None else dtype, vdevice, ndim, span)


def _vdevice(text):
    """The device that a text "llvm:0:global" means: one that the module being written declares,
    else a new one."""
    from tvm.script.ir_builder import IRBuilder
    from tvm.script.ir_builder.ir import lookup_vdevice

    kind, *rest = text.split(":")
    index = int(rest[0]) if rest and rest[0] else 0
    if IRBuilder.is_in_scope():
        return lookup_vdevice(kind, index)
    return VDevice(kind, index, rest[1] if len(rest) > 1 else "global")


@register_node("relax.TupleStructInfo")
class TupleStructInfo(StructInfo):
    pass


@register_node("relax.FuncStructInfo")
class FuncStructInfo(StructInfo):
    def __init__(self, params, ret, purity=True, span=None):
        construct(self, params, ret, purity, None, span)

    @staticmethod
    def opaque_func(*, ret=None, derive_func=None, purity=False, span=None):
        """A function that takes anything; `derive_func(call, builder)` says what a call returns, or
        it is `ret`."""
        if isinstance(derive_func, str):
            derive_func = EnvFunc.get(derive_func)
        return FuncStructInfo._opaque(ret, derive_func, purity, span)
