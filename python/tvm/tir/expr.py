# SPDX-License-Identifier: Apache-2.0
"""Expression nodes with Python behaviour."""

import tvm_ffi

from tvm._derive import Node, construct, fill, register_node
from tvm.ir.expr import (
    EqualOp,
    ExprOp,
    FloatImm,
    IntImm,
    NotEqualOp,
    PrimExpr,
    Range,
    div_ambiguity_error,
    with_operators,
)
from tvm.ir.op import Op
from tvm.ir.type import PrimType, Type

_derived, __dir__ = fill("tvm.tir")
PrimExprWithOp = PrimExpr


def convert(expr):
    """The expression that a Python value stands for; lists become arrays."""
    if isinstance(expr, (list, tuple)):
        return tvm_ffi.Array([convert(e) for e in expr])
    if isinstance(expr, str):
        return StringImm(expr)
    return expr if isinstance(expr, tvm_ffi.Object) else _derived("const")(expr)


def _type(dtype):
    return dtype if isinstance(dtype, Type) else PrimType(dtype)


@register_node("tir.Var")
class Var(PrimExpr):
    def __init__(self, name, dtype="int32", span=None):
        construct(self, name, _type(dtype), span)

    @property
    def name(self):
        return self.name_hint


@register_node("tir.SizeVar")
class SizeVar(Var):
    __init__ = Var.__init__


@with_operators
@register_node("tir.IterVar")
class IterVar(Node, ExprOp):
    DataPar = 0
    ThreadIndex = 1
    CommReduce = 2
    Ordered = 3
    Opaque = 4
    Unrolled = 5
    Vectorized = 6
    Parallelized = 7
    Tensorized = 8

    def __init__(self, dom, var, iter_type, thread_tag="", span=None):
        if dom is not None and not isinstance(dom, Range):
            if not isinstance(dom, (list, tuple)) or len(dom) != 2:
                raise TypeError(f"IterVar: expected a Range or (begin, end), got {dom!r}")
            dom = Range(dom[0], dom[1])
        if isinstance(var, str):
            var = Var(var, "int32" if dom is None else dom.extent.dtype)
        construct(self, dom, var, iter_type, thread_tag, span)

    @property
    def dtype(self):
        return self.var.dtype


@register_node("tir.StringImm")
class StringImm(PrimExpr):
    def __eq__(self, other):
        if isinstance(other, (str, StringImm)):
            return str(self.value) == str(getattr(other, "value", other))
        return False

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(str(self.value))


@register_node("tir.Call")
class Call(PrimExpr):
    def __init__(self, dtype, op, args, span=None, annotations=None):
        if isinstance(op, str):
            op = Op.get(op)
        construct(self, dtype, op, args, annotations or {}, span)


@register_node("tir.Reduce")
class Reduce(PrimExpr):
    def __init__(self, combiner, src, rdom, condition, value_index, init=None, span=None):
        construct(self, combiner, src, rdom, condition, value_index, init or [], span)


@register_node("tir.CommReducer")
class CommReducer(Node):
    pass


class CallEffectKind:
    """What evaluating a call does beside giving its value."""

    ExprAnnotation = IntImm("int32", 0)
    Pure = IntImm("int32", 1)
    ReadState = IntImm("int32", 2)
    UpdateState = IntImm("int32", 3)
    Opaque = UpdateState
    SpecialCallArg = IntImm("int32", 4)
    EmbedInfo = IntImm("int32", 5)
    ControlJump = IntImm("int32", 6)


class _Group(type):
    """A class whose instances are the nodes of the classes it names: for isinstance only."""

    def __instancecheck__(cls, value):
        return type(value).__name__ in cls.members


class BinaryOpExpr(metaclass=_Group):
    members = frozenset("Add Sub Mul Div Mod FloorDiv FloorMod Min Max".split())


class CmpExpr(metaclass=_Group):
    members = frozenset("EQ NE LT LE GT GE".split())


class LogicalExpr(metaclass=_Group):
    members = frozenset("And Or Not".split())


class ConstExpr(metaclass=_Group):
    members = frozenset("IntImm FloatImm StringImm".split())


__all__ = [
    "Call",
    "CallEffectKind",
    "CommReducer",
    "EqualOp",
    "ExprOp",
    "FloatImm",
    "IntImm",
    "IterVar",
    "NotEqualOp",
    "PrimExpr",
    "Reduce",
    "SizeVar",
    "StringImm",
    "Var",
    "convert",
    "div_ambiguity_error",
]


def __getattr__(name):
    return _derived(name)
