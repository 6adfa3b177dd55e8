# SPDX-License-Identifier: Apache-2.0
"""Visitors and mutators written in Python: a subclass overrides the nodes it is about."""

import re

from tvm._derive import Node, fill

from .expr import PrimExpr
from .stmt import Stmt

_ir, _ = fill("tvm.ir")


def _snake(name):
    """FloorDiv -> floor_div, EQ -> eq"""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class _Functor:
    """`visit_<node>_(op)` of the subclass, else the generic walk; one method for every node class."""

    _handlers = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._handlers = {}

    def _handler(self, node):
        cls = type(node)
        if cls not in self._handlers:
            names = [f"visit_{_snake(c.__name__)}_" for c in cls.__mro__[:2]]
            own = (n for n in names if any(n in c.__dict__ for c in type(self).__mro__))
            self._handlers[cls] = next(own, None)
        return self._handlers[cls]

    def __getattr__(self, name):
        """`super().visit_for_(op)` and the like: the generic walk."""
        if name.startswith("visit_") and name.endswith("_"):
            return self._default
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _dispatch(self, node):
        handler = self._handler(node)
        return getattr(self, handler)(node) if handler else self._default(node)

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
        _ir("VisitChildren")(node, lambda child: self._child(child) and None)

    default_visit = _default


class PyStmtExprMutator(_Functor):
    """Rewrites statements and expressions, sharing what does not change; buffers are mapped once.

    class Double(PyStmtExprMutator):
        def visit_int_imm_(self, op):
            return IntImm(op.dtype, 2 * op.value)
    """

    def _default(self, node):
        shared = self.__dict__.setdefault("_shared", {})
        if not isinstance(node, (Stmt, PrimExpr)) and node in shared:
            return shared[node]
        result = _ir("MapChildren")(node, self._child)
        if not isinstance(node, (Stmt, PrimExpr)):
            shared[node] = result
        return result

    default_visit = _default


def visitor(cls):
    """Class decorator, kept for programs that use it: the class works as it is."""
    return cls


mutator = visitor
