# SPDX-License-Identifier: Apache-2.0
"""Operators and the attributes registered for them."""

from tvm._derive import fill, register_node

from .expr import IntImm, RelaxExpr

_ir, _ = fill("tvm.ir")


@register_node("ir.Op")
class Op(RelaxExpr):
    def __init__(self):
        raise RuntimeError("Op: expected operators to be looked up with Op.get(name)")

    @staticmethod
    def get(op_name):
        """The operator of a name; AttributeError when there is none."""
        return _ir("GetOp")(op_name)

    @staticmethod
    def list_op_names():
        """The names of all operators, sorted."""
        return [str(name) for name in _ir("ListOpNames")()]


def register_op_attr(op_name, attr_key, value=None, level=10):
    """Sets an attribute of an operator (made if it does not exist); a decorator without `value`."""

    def register(v):
        number = v.value if isinstance(v, IntImm) else v  # such as tir.CallEffectKind.Pure
        _ir("RegisterOp")(op_name).set_attr(attr_key, number, level)
        return v

    return register if value is None else register(value)


def register_intrin_lowering(op_name, target, *, f=None, level=10):
    """Says how LowerIntrin expands an operator for a kind of target: f(call) -> expression."""
    return register_op_attr(op_name, f"{target}.FLowerIntrinsic", f, level)
