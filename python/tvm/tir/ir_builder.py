# SPDX-License-Identifier: Apache-2.0
"""Statements built one after the other, with pointers that index like arrays:

ib = tvm.tir.ir_builder.create()
A = ib.pointer("float32", name="A")
with ib.for_range(0, n, name="i") as i:
    A[i] = A[i] + 1
stmt = ib.get()
"""

import tvm_ffi

from . import expr as _expr
from . import op as _op
from . import stmt as _stmt
from .buffer import Buffer, decl_buffer
from .expr import Var

_KINDS = {
    "serial": _stmt.ForKind.SERIAL,
    "parallel": _stmt.ForKind.PARALLEL,
    "vectorize": _stmt.ForKind.VECTORIZED,
    "vectorized": _stmt.ForKind.VECTORIZED,
    "unroll": _stmt.ForKind.UNROLLED,
    "unrolled": _stmt.ForKind.UNROLLED,
}


class WithScope:
    """`with` gives a value; its end calls back."""

    def __init__(self, enter_value, exit_cb):
        self._enter_value, self._exit_cb = enter_value, exit_cb

    def __enter__(self):
        return self._enter_value

    def __exit__(self, ptype, value, trace):
        if ptype is None:
            self._exit_cb()


class BufferVar(tvm_ffi.core.ObjectConvertible):
    """Memory that is read by `p[i]` and written by `p[i] = x`."""

    def __init__(self, builder, buffer, content_type):
        self._builder, self._buffer, self._content_type = builder, buffer, content_type

    def asobject(self):
        return self._buffer

    @property
    def dtype(self):
        return self._content_type

    def __getitem__(self, index):
        return _expr.BufferLoad(self._buffer, _indices(index))

    def __setitem__(self, index, value):
        if isinstance(value, (bool, int, float, _expr.IntImm, _expr.FloatImm)):
            value = _expr.const(value, self._content_type)
        value = _expr.convert(value)
        if value.dtype != self._content_type:
            raise ValueError(
                f"ir_builder: expected a value of type {self._content_type} for "
                f"{self._buffer.name}, got {value.dtype}"
            )
        self._builder.emit(_stmt.BufferStore(self._buffer, value, _indices(index)))


def _indices(index):
    return list(index) if isinstance(index, (list, tuple)) else [index]


class IRBuilder:
    """A stack of statement sequences; what is open wraps what follows in it."""

    def __init__(self):
        self._sequences = [[]]

    def emit(self, stmt):
        """Adds a statement, an expression for its effect, or a function from the statements that
        follow to one."""
        if isinstance(stmt, _expr.PrimExpr):
            stmt = _stmt.Evaluate(stmt)
        if not isinstance(stmt, _stmt.Stmt) and not callable(stmt):
            raise TypeError(f"ir_builder: expected a statement, got {type(stmt).__name__}")
        self._sequences[-1].append(stmt)

    def _pop(self):
        """The innermost sequence as one statement."""
        body = None
        for stmt in reversed(self._sequences.pop()):
            if not isinstance(stmt, _stmt.Stmt):
                body = stmt(_stmt.Evaluate(0) if body is None else body)
            elif body is None:
                body = stmt
            else:
                rest = body.seq if isinstance(body, _stmt.SeqStmt) else [body]
                body = _stmt.SeqStmt([stmt, *rest])
        return _stmt.Evaluate(0) if body is None else body

    def _scope(self, value, make):
        """A `with` scope whose statements become make(body)."""
        self._sequences.append([])
        return WithScope(value, lambda: self.emit(make(self._pop())))

    def scope_attr(self, node, attr_key, value):
        """Says something about `node` for the statements that follow."""
        value = _expr.StringImm(value) if isinstance(value, str) else _expr.convert(value)
        self.emit(lambda body: _stmt.AttrStmt(node, attr_key, value, body))

    def for_range(self, begin, end, name="i", dtype=None, kind="serial", step=None):
        """A loop from begin to end."""
        if kind not in _KINDS:
            raise ValueError(f"for_range: expected a kind of {sorted(_KINDS)}, got '{kind}'")
        begin, end = _expr.convert(begin), _expr.convert(end)
        if dtype is None:
            dtype = next((e.dtype for e in (end, begin) if not isinstance(e, _expr.IntImm)), None)
            dtype = dtype or end.dtype
        begin, end = (_in_type(e, dtype) for e in (begin, end))
        is_zero = isinstance(begin, _expr.IntImm) and begin.value == 0
        extent = end if is_zero else end - begin
        var = Var(name, dtype)

        def make(body):
            return _stmt.For(var, begin, extent, _KINDS[kind], body, None, {}, step)

        return self._scope(var, make)

    def while_loop(self, condition):
        return self._scope(None, lambda body: _stmt.While(condition, body))

    def if_scope(self, cond):
        return self._scope(None, lambda body: _stmt.IfThenElse(cond, body, None))

    def else_scope(self):
        """The other branch of the `if` just before."""
        last = self._sequences[-1][-1] if self._sequences[-1] else None
        if not isinstance(last, _stmt.IfThenElse) or last.else_case is not None:
            raise RuntimeError("else_scope: expected directly after an if_scope")
        self._sequences[-1].pop()
        return self._scope(
            None, lambda body: _stmt.IfThenElse(last.condition, last.then_case, body)
        )

    def new_scope(self):
        """What is declared inside ends with it."""
        return self._scope(None, lambda body: body)

    def let(self, var_name, value):
        """A variable with a value for the statements that follow."""
        value = _expr.convert(value)
        var = Var(var_name, value.dtype)
        self.emit(lambda body: _stmt.LetStmt(var, value, body))
        return var

    def allocate(self, dtype, shape, name="buf", axis_separators=None, scope=""):
        """Memory for the statements that follow."""
        shape = list(shape) if isinstance(shape, (list, tuple, tvm_ffi.Array)) else [shape]
        buffer = decl_buffer(shape, dtype, name, scope=scope, axis_separators=axis_separators)
        condition = _expr.const(True, "bool")
        self.emit(lambda body: _stmt.Allocate(buffer.data, dtype, shape, condition, body))
        return BufferVar(self, buffer, dtype)

    def pointer(self, content_type, name="ptr", scope=""):
        """Memory that comes from elsewhere: a parameter."""
        return BufferVar(self, decl_buffer([1], content_type, name, scope=scope), content_type)

    def buffer_ptr(self, buf, shape=None):
        """A buffer, or its memory in another shape."""
        if not isinstance(buf, Buffer):
            raise TypeError(f"buffer_ptr: expected a buffer, got {type(buf).__name__}")
        if shape is not None:
            buf = decl_buffer(shape, buf.dtype, buf.name, data=buf.data)
        return BufferVar(self, buf, buf.dtype)

    def likely(self, expr):
        """The condition, which mostly holds."""
        return _op.likely(expr)

    def get(self):
        """All statements as one."""
        if len(self._sequences) != 1:
            raise RuntimeError("ir_builder: expected all scopes to have ended, got open ones")
        stmt = self._pop()
        self._sequences = [[]]
        return stmt


def _in_type(value, dtype):
    if value.dtype == dtype:
        return value
    if isinstance(value, _expr.IntImm):
        return _expr.const(int(value), dtype)
    return value.astype(dtype)


def create():
    """A new builder."""
    return IRBuilder()
