# SPDX-License-Identifier: Apache-2.0
"""Expressions: the bases, and Python's operators on them."""

import tvm_ffi

from tvm._derive import Node, construct, fill, function, register_node

_ir, _ = fill("tvm.ir")


class _Functions:
    """C++ functions of a prefix, looked up once: `_op.add(a, b, None)`."""

    def __init__(self, prefix):
        self._prefix = prefix

    def __getattr__(self, name):
        value = function(self._prefix + name, __name__)
        setattr(self, name, value)
        return value


_op, _tir, _relax = _Functions("tir._op."), _Functions("tir."), _Functions("relax.")


def _is_int(value):
    """Whether a value is an integer for `/`, whose rounding must then be spelled out."""
    if isinstance(value, int):
        return True
    dtype = getattr(value, "dtype", None)
    return isinstance(dtype, str) and dtype.startswith(("int", "uint", "bool"))


_AMBIGUOUS = (
    "expected floats for '/': the quotient of integers can be rounded in more than one way. "
    "Write tir.truncdiv(a, b) (towards zero), tir.floordiv(a, b) or a // b (down), or cast one "
    "operand to a float"
)


def div_ambiguity_error():
    return RuntimeError(_AMBIGUOUS)


class ExprOp:
    """Python's operators; each makes an expression."""

    __slots__ = ()

    def __add__(self, other):
        return _op.add(self, other, None)

    def __radd__(self, other):
        return _op.add(other, self, None)

    def __sub__(self, other):
        return _op.sub(self, other, None)

    def __rsub__(self, other):
        return _op.sub(other, self, None)

    def __mul__(self, other):
        return _op.mul(self, other, None)

    def __rmul__(self, other):
        return _op.mul(other, self, None)

    def __truediv__(self, other):
        if _is_int(self) and _is_int(other):
            raise div_ambiguity_error()
        return _op.div(self, other, None)

    def __rtruediv__(self, other):
        if _is_int(self) and _is_int(other):
            raise div_ambiguity_error()
        return _op.div(other, self, None)

    def __floordiv__(self, other):
        return _op.floordiv(self, other, None)

    def __rfloordiv__(self, other):
        return _op.floordiv(other, self, None)

    def __mod__(self, other):
        return _op.floormod(self, other, None)

    def __rmod__(self, other):
        return _op.floormod(other, self, None)

    def __neg__(self):
        return _op.neg(self, None)

    def __pos__(self):
        return self

    def __lshift__(self, other):
        return _tir.shift_left(self, other, None)

    def __rlshift__(self, other):
        return _tir.shift_left(other, self, None)

    def __rshift__(self, other):
        return _tir.shift_right(self, other, None)

    def __rrshift__(self, other):
        return _tir.shift_right(other, self, None)

    def __and__(self, other):
        return _tir.bitwise_and(self, other, None)

    def __rand__(self, other):
        return _tir.bitwise_and(other, self, None)

    def __or__(self, other):
        return _tir.bitwise_or(self, other, None)

    def __ror__(self, other):
        return _tir.bitwise_or(other, self, None)

    def __xor__(self, other):
        return _tir.bitwise_xor(self, other, None)

    def __rxor__(self, other):
        return _tir.bitwise_xor(other, self, None)

    def __invert__(self):
        return _tir.bitwise_not(self, None)

    def __pow__(self, other):
        return _tir.pow(self, other, None)

    def __rpow__(self, other):
        return _tir.pow(other, self, None)

    def __abs__(self):
        return _tir.abs(self, None)

    def __lt__(self, other):
        return _op.less(self, other, None)

    def __le__(self, other):
        return _op.less_equal(self, other, None)

    def __gt__(self, other):
        return _op.greater(self, other, None)

    def __ge__(self, other):
        return _op.greater_equal(self, other, None)

    def __eq__(self, other):
        return EqualOp(self, other)

    def __ne__(self, other):
        return NotEqualOp(self, other)

    def __bool__(self):
        raise ValueError(
            "expected a Python bool, got a symbolic expression, whose value is not known yet: "
            f"{self}. Instead of Python's `if`, `and`, `or`, `not` write "
            "tir.if_then_else(cond, a, b), tir.all(...), tir.any(...), tir.Not(...)"
        )

    def equal(self, other, span=None):
        """The expression self == other."""
        return _op.equal(self, other, span)

    def astype(self, dtype, span=None):
        """The value in another type."""
        return _op.cast(dtype, self, span)


class _DeferredCompare(tvm_ffi.core.ObjectConvertible, ExprOp):
    """a == b: an expression where one is needed, identity as a Python bool (so that dicts work)."""

    __slots__ = ("a", "b")

    # Called when Python asks for the truth; te.compute refuses it for elements and indices.
    check_truth = staticmethod(lambda comparison: None)

    def __init__(self, a, b, span=None):
        self.a, self.b = a, b

    @property
    def dtype(self):
        return self.asobject().dtype

    def __repr__(self):
        return repr(self.asobject())

    __hash__ = object.__hash__


class EqualOp(_DeferredCompare):
    def __bool__(self):
        self.check_truth(self)
        return _same(self.a, self.b)

    def asobject(self):
        return _op.equal(self.a, self.b, None)


class NotEqualOp(_DeferredCompare):
    def __bool__(self):
        self.check_truth(self)
        return not _same(self.a, self.b)

    def asobject(self):
        return _op.not_equal(self.a, self.b, None)


def _same(a, b):
    if isinstance(a, tvm_ffi.Object):
        return isinstance(b, tvm_ffi.Object) and a.same_as(b)
    return False


@register_node("ir.BaseExpr")
class BaseExpr(Node):
    pass


def with_operators(cls):
    """Class decorator: the comparisons of ExprOp win over those that every object has."""
    for name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
        setattr(cls, name, getattr(ExprOp, name))
    cls.__hash__ = tvm_ffi.Object.__hash__
    return cls


@with_operators
@register_node("ir.PrimExpr")
class PrimExpr(BaseExpr, ExprOp):
    @property
    def ty(self):
        """The type of the value."""
        return _ir("PrimType")(self.dtype)


@register_node("ir.IntImm")
class IntImm(PrimExpr):
    def __int__(self):
        return self.value

    def __index__(self):
        return self.value

    def __bool__(self):
        return self.value != 0

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        if isinstance(other, (int, IntImm)):
            return self.value == int(other)
        return EqualOp(self, other)

    def __ne__(self, other):
        if isinstance(other, (int, IntImm)):
            return self.value != int(other)
        return NotEqualOp(self, other)


@register_node("ir.FloatImm")
class FloatImm(PrimExpr):
    def __float__(self):
        return self.value


@register_node("ir.RelaxExpr")
class RelaxExpr(BaseExpr):
    @property
    def struct_info(self):
        """What is known about the values of the expression; ValueError when nothing is yet."""
        info = self.struct_info_
        return _relax.GetStructInfo(self) if info is None else info

    @property
    def ty(self):
        """The struct info, which is the type of an expression since 0.27."""
        return self.struct_info


@register_node("ir.GlobalVar")
class GlobalVar(RelaxExpr):
    def __init__(self, name_hint):
        construct(self, name_hint)

    def __call__(self, *args):
        """A call of the function of this name: in a graph when the arguments are of a graph."""
        if self.struct_info_ is not None or any(isinstance(arg, RelaxExpr) for arg in args):
            from tvm.relax import Call

            return Call(self, args)
        from tvm.tir import call_tir

        return call_tir(self, *args)


@register_node("ir.Range")
class Range(Node):
    def __init__(self, begin, end=None, span=None):
        """Range(begin, end) is [begin, end); Range(extent) is [0, extent)."""
        if end is None:
            begin, extent = 0, begin
            begin = _zero_like(extent)
        else:
            extent = end - begin if isinstance(end, int) else _op.sub(end, begin, span)
        construct(self, begin, extent, span)

    @staticmethod
    def from_min_extent(min_value, extent, span=None):
        """[min_value, min_value + extent)"""
        return _ir("Range_")(min_value, extent, span)

    def __eq__(self, other):
        return isinstance(other, Range) and _ir("structural_equal")(self, other, False)

    def __ne__(self, other):
        return not self == other

    __hash__ = tvm_ffi.Object.__hash__


def _zero_like(value):
    dtype = getattr(value, "dtype", None)
    return 0 if dtype is None else IntImm(dtype, 0)
