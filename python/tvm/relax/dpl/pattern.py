# SPDX-License-Identifier: Apache-2.0
"""Patterns of expressions."""

import tvm_ffi

from tvm._derive import Node, construct, register_node, without_value
from tvm.ir import DictAttrs, Op
from tvm.relax.expr import Expr

from .context import _current_context

__all__ = [
    "AndPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DFConstraint",
    "DFPattern",
    "DataTypePattern",
    "DataflowVarPattern",
    "ExprPattern",
    "ExternFuncPattern",
    "FunctionPattern",
    "GlobalVarPattern",
    "NotPattern",
    "OrPattern",
    "PatternSeq",
    "PrimArrPattern",
    "SameShapeConstraint",
    "ShapePattern",
    "StructInfoPattern",
    "TupleGetItemPattern",
    "TuplePattern",
    "UnorderedTuplePattern",
    "UseConstraint",
    "VarPattern",
    "WildcardPattern",
    "has_attr",
    "has_dtype",
    "is_call_dps_packed",
    "is_call_packed",
    "is_call_tir",
    "is_const",
    "is_dfv",
    "is_expr",
    "is_gv",
    "is_op",
    "is_shape",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "make_fused_bias_activation_pattern",
    "register_df_node",
    "reject",
    "wildcard",
]


def register_df_node(type_key=None):
    """Class decorator for a node of the pattern language; its key is `relax.dpl.<name>` unless one
    is given."""
    if isinstance(type_key, type):
        return register_node("relax.dpl." + type_key.__name__)(type_key)
    return lambda cls: register_node(type_key or "relax.dpl." + cls.__name__)(cls)


def _constrain(constraint):
    """Adds the constraint to the innermost context, if there is one."""
    context = _current_context()
    if context is not None:
        context.add_constraint(constraint)


def _chain(left, right, index, only):
    """The patterns of both, of which the last of `left` is used by the first of `right`."""
    left, right = (p if isinstance(p, PatternSeq) else PatternSeq([p]) for p in (left, right))
    use = UseConstraint(left.patterns[-1], right.patterns[0], index, only)
    _constrain(use)
    seq = without_value(PatternSeq)
    pairs = [*left.pair_constraints, use, *right.pair_constraints]
    construct(seq, [*left.patterns, *right.patterns], pairs)
    return seq


class _Chainable:
    """What can be said about users, of a pattern or a sequence."""

    __slots__ = ()

    def used_by(self, other, index=-1):
        """`other` uses this, as its argument `index` (-1: any)."""
        return _chain(self, other, index, False)

    def only_used_by(self, other, index=-1):
        """Nobody but `other` uses this."""
        return _chain(self, other, index, True)

    def __xor__(self, other):
        return self.used_by(other)

    def __rshift__(self, other):
        return self.only_used_by(other)


def _arithmetic(name):
    def forward(self, other):
        return is_op(name)(self, _as_pattern(other))

    return forward


def _as_pattern(value):
    if isinstance(value, DFPattern):
        return value
    if isinstance(value, Expr):
        return ExprPattern(value)
    if isinstance(value, (list, tuple, tvm_ffi.Array)):
        return TuplePattern(value)
    raise TypeError(f"expected a pattern or an expression, got {type(value).__name__}")


def _patterns(values):
    return [_as_pattern(value) for value in values]


@register_df_node
class DFPattern(Node, _Chainable):
    def __call__(self, *args, varg_default_wildcard=False, add_constraint=True):
        return CallPattern(self, args, varg_default_wildcard, add_constraint)

    def __or__(self, other):
        return OrPattern(self, other)

    def __and__(self, other):
        return AndPattern(self, other)

    def __invert__(self):
        return NotPattern(self)

    __add__ = _arithmetic("relax.add")
    __sub__ = _arithmetic("relax.subtract")
    __mul__ = _arithmetic("relax.multiply")
    __truediv__ = _arithmetic("relax.divide")

    def __getitem__(self, index):
        return TupleGetItemPattern(self, index)

    def __iter__(self):
        raise TypeError(f"'{type(self).__name__}' is not iterable")

    def has_attr(self, attrs):
        """The same with these attributes."""
        return AttrPattern(self, attrs)

    def has_struct_info(self, struct_info):
        """The same of this kind; symbolic variables that stand alone in it are bound."""
        return StructInfoPattern(self, struct_info)

    has_ty = has_struct_info  # since 0.27

    def has_dtype(self, dtype):
        """The same of this dtype."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape):
        """The same whose dimensions are provably these."""
        return ShapePattern(self, shape)

    def match(self, expr, var2val=None):
        """Whether the expression matches; variables are looked through to their values in
        `var2val`."""
        return self._match(expr, var2val)

    def extract_matched_expr(self, expr, var2val=None):
        """{pattern: expression} for all parts of the pattern, or None."""
        return self._extract_matched_expr(expr, var2val)

    def optional(self, option):
        """This, or what `option` makes of it."""
        return self | option(self)

    def dup(self):
        """A new pattern like this one, which may match another expression."""
        return self._dup()

    def fork_to(self, *args):
        """All of these use this."""
        for user in args:
            self.used_by(user)

    def same_shape_as(self, *args):
        """All have one shape: a constraint of the context."""
        return SameShapeConstraint(self, *args)


@register_df_node
class DFConstraint(Node):
    pass


@register_df_node
class UseConstraint(DFConstraint):
    pass


@register_df_node
class ExprPattern(DFPattern):
    def __init__(self, expr):
        construct(self, expr)


def _name_hint(self):
    """The name, or "" for any."""
    return self.name


@register_df_node
class VarPattern(DFPattern):
    def __init__(self, name_hint=""):
        construct(self, name_hint)

    name_hint = property(_name_hint)


@register_df_node
class DataflowVarPattern(VarPattern):
    def __init__(self, name_hint=""):
        construct(self, name_hint)


@register_df_node
class GlobalVarPattern(DFPattern):
    def __init__(self, name_hint=""):
        construct(self, name_hint)

    name_hint = property(_name_hint)


@register_df_node
class ExternFuncPattern(DFPattern):
    def __init__(self, global_symbol=""):
        construct(self, global_symbol)


@register_df_node
class ConstantPattern(DFPattern):
    pass


@register_df_node
class WildcardPattern(DFPattern):
    pass


@register_df_node
class CallPattern(DFPattern):
    def __init__(self, op, args, varg_default_wildcard=False, add_constraint=True):
        args = _patterns(args)
        construct(self, op, args, varg_default_wildcard)
        if add_constraint and _current_context() is not None:
            for index, arg in enumerate(args):
                _constrain(UseConstraint(arg, self, index, False))


@register_df_node
class FunctionPattern(DFPattern):
    def __init__(self, params, body):
        construct(self, params, body)


@register_df_node
class TuplePattern(DFPattern):
    def __init__(self, fields):
        construct(self, _patterns(fields))

    def __len__(self):
        return len(self.fields)


@register_df_node
class UnorderedTuplePattern(DFPattern):
    def __init__(self, fields):
        construct(self, _patterns(fields))

    def __len__(self):
        return len(self.fields)


@register_df_node
class TupleGetItemPattern(DFPattern):
    def __init__(self, tuple_value, index=None):
        construct(self, tuple_value, -1 if index is None else index)


@register_df_node
class OrPattern(DFPattern):
    def __init__(self, left, right):
        construct(self, left, _as_pattern(right))


@register_df_node
class AndPattern(DFPattern):
    def __init__(self, left, right):
        construct(self, left, _as_pattern(right))


@register_df_node
class NotPattern(DFPattern):
    def __init__(self, to_reject):
        construct(self, to_reject)


@register_df_node
class StructInfoPattern(DFPattern):
    def __init__(self, pattern, struct_info):
        construct(self, pattern, struct_info)


@register_df_node
class DataTypePattern(DFPattern):
    def __init__(self, pattern, dtype):
        construct(self, pattern, dtype)


@register_df_node
class ShapePattern(DFPattern):
    def __init__(self, pattern, shape):
        construct(self, pattern, shape)


@register_df_node
class PrimArrPattern(DFPattern):
    def __init__(self, shape):
        construct(self, shape)

    def __getitem__(self, index):
        return self.fields[index]

    def __len__(self):
        return len(self.fields)


@register_df_node
class AttrPattern(DFPattern):
    def __init__(self, pattern, attrs):
        construct(self, pattern, dict(attrs.items()) if isinstance(attrs, DictAttrs) else attrs)


@register_df_node
class SameShapeConstraint(DFConstraint):
    def __init__(self, *args):
        construct(self, list(args))
        _constrain(self)


@register_df_node
class PatternSeq(Node, _Chainable):
    """Patterns of which each is used (only, if said so) by the next."""

    def __init__(self, patterns, only_use=False):
        patterns = list(patterns)
        pairs = [
            UseConstraint(a, b, -1, only_use)
            for a, b in zip(patterns[:-1], patterns[1:], strict=True)
        ]
        construct(self, patterns, pairs)
        for pair in pairs:
            _constrain(pair)

    def __getitem__(self, index):
        return self.patterns[index]

    def dup(self):
        """New patterns like these, with the same constraints between them."""
        copies = [pattern.dup() for pattern in self.patterns]
        pairs = [
            UseConstraint(a, b, pair.index, pair.only)
            for a, b, pair in zip(copies[:-1], copies[1:], self.pair_constraints, strict=True)
        ]
        seq = without_value(PatternSeq)
        construct(seq, copies, pairs)
        for pair in pairs:
            _constrain(pair)
        return seq


def is_var(name=""):
    """A variable, of that name unless it is empty."""
    return VarPattern(name)


def is_gv(name=""):
    """A function of the module."""
    return GlobalVarPattern(name)


def is_dfv(name=""):
    """A variable of a dataflow block."""
    return DataflowVarPattern(name)


def is_const():
    """A constant."""
    return ConstantPattern()


def is_expr(expr):
    """This expression, compared by structure."""
    return ExprPattern(expr)


def is_op(op_name):
    """An operator, to be called with patterns of arguments."""
    return ExprPattern(Op.get(op_name))


def is_tuple(fields, unordered=False):
    """A tuple of these fields, in this or any order."""
    return UnorderedTuplePattern(fields) if unordered else TuplePattern(fields)


def is_tuple_get_item(tuple_value, index=None):
    """An item of a tuple, any without an index."""
    return TupleGetItemPattern(tuple_value, index)


def wildcard():
    """Anything."""
    return WildcardPattern()


def has_dtype(dtype, pattern=None):
    """Something of that dtype."""
    return (wildcard() if pattern is None else pattern).has_dtype(dtype)


def has_attr(attrs, pattern=None):
    """Something with these attributes."""
    return (wildcard() if pattern is None else pattern).has_attr(attrs)


def is_shape(shape):
    """A shape whose dimensions are provably these."""
    if not isinstance(shape, (list, tuple, tvm_ffi.Array)):
        raise ValueError(f"is_shape: expected a list of dimensions, got {type(shape).__name__}")
    return PrimArrPattern(shape)


def _call_of(op_name, callee, args, *more):
    args = wildcard() if args is None else _as_pattern(args)
    return is_op(op_name)(callee, args, *more, add_constraint=False)


def is_call_tir(func_name, args=None, tir_vars=None):
    """A call of a PrimFunc of the module, of that name unless it is empty."""
    more = [] if tir_vars is None else [tir_vars]
    return _call_of("relax.call_tir", GlobalVarPattern(func_name), args, *more)


def is_call_dps_packed(func_name, args=None):
    """A call of an external function that writes into tensors it is given."""
    return _call_of("relax.call_dps_packed", ExternFuncPattern(func_name), args)


def is_call_packed(func_name, args=None):
    """A call of an external function."""
    callee = ExternFuncPattern(func_name)
    if args is None:
        return callee(varg_default_wildcard=True, add_constraint=False)
    return callee(*args, add_constraint=False)


def reject(pattern):
    """What the pattern does not match."""
    return NotPattern(pattern)


def make_fused_bias_activation_pattern(op_name, with_bias=False, activation=None):
    """`op_name` of two operands, then a bias added and an activation applied where asked for."""
    out = is_op(op_name)(wildcard(), wildcard())
    if with_bias:
        out = is_op("relax.add")(out, wildcard())
    return is_op(activation)(out) if activation else out
