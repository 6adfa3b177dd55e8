# SPDX-License-Identifier: Apache-2.0
"""Visitors and mutators written in Python: a subclass overrides the nodes it is about."""

import re

import tvm_ffi

from tvm import tir
from tvm._derive import Node, fill

from .expr import PrimExpr
from .stmt import Stmt

_ir, _ = fill("tvm.ir")


def _snake(name):
    """FloorDiv -> floor_div, EQ -> eq"""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class _Functor:
    """Calls `visit_<node>_(op)`, which a subclass may override; the default walks the children."""

    def _dispatch(self, node):
        name = f"visit_{_snake(type(node).__name__)}_"
        return getattr(self, name, self._default)(node)

    def _child(self, node):
        if isinstance(node, Stmt):
            return self.visit_stmt(node)
        if isinstance(node, PrimExpr):
            return self.visit_expr(node)
        return self._default(node) if isinstance(node, Node) else node

    def visit_stmt(self, stmt):
        return self._dispatch(stmt)

    def visit_expr(self, expr):
        return self._dispatch(expr)


class PyStmtExprVisitor(_Functor):
    """Visits statements and expressions:

    class Count(PyStmtExprVisitor):
        loops = 0

        def visit_for_(self, op):
            self.loops += 1
            self.default_visit(op)
    """

    def _default(self, node):
        _ir("VisitChildren")(node, self._child)

    default_visit = _default


class PyStmtExprMutator(_Functor):
    """Rewrites statements and expressions, sharing what does not change; buffers are mapped once.

    class Double(PyStmtExprMutator):
        def visit_int_imm_(self, op):
            return IntImm(op.dtype, 2 * op.value)
    """

    def _default(self, node):
        if not isinstance(node, (tir.Buffer, tir.IterVar, tir.DataProducer)):
            return _ir("MapChildren")(node, self._child)
        shared = self.__dict__.setdefault("_shared", {})
        if node not in shared:
            shared[node] = _ir("MapChildren")(node, self._child)
        return shared[node]

    default_visit = _default


for _key in tvm_ffi.registry.get_registered_type_keys():
    _name = str(_key).rsplit(".", 1)[-1]
    if str(_key).startswith(("tir.", "ir.")) and issubclass(
        getattr(tir, _name, object), (Stmt, PrimExpr)
    ):
        for _cls in (PyStmtExprVisitor, PyStmtExprMutator):
            setattr(_cls, f"visit_{_snake(_name)}_", _cls._default)


def visitor(cls):
    """Class decorator, kept for programs that use it: the class works as it is."""
    return cls


mutator = visitor
