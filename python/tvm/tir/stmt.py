# SPDX-License-Identifier: Apache-2.0
"""Statement nodes with Python behaviour."""

from enum import IntEnum

from tvm._derive import Node, construct, fill, register_node

_derived, __dir__ = fill("tvm.tir")


class ForKind(IntEnum):
    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


@register_node("tir.Stmt")
class Stmt(Node):
    pass


@register_node("tir.AllocateConst")
class AllocateConst(Stmt):
    def __init__(self, buffer_var, dtype, extents, data_or_idx, body, annotations=None, span=None):
        data, index = (None, data_or_idx) if isinstance(data_or_idx, int) else (data_or_idx, None)
        construct(self, buffer_var, dtype, extents, data, index, body, annotations or {}, span)


@register_node("tir.For")
class For(Stmt):
    def __init__(
        self, loop_var, min, extent, kind, body, thread_binding=None, annotations=None, step=None,
        span=None,
    ):  # fmt: skip
        construct(
            self,
            loop_var,
            min,
            extent,
            int(kind),
            body,
            thread_binding,
            annotations or {},
            step,
            span,
        )


@register_node("tir.Block")
class Block(Stmt):
    def __init__(
        self, iter_vars, reads, writes, name_hint, body, init=None, alloc_buffers=None,
        match_buffers=None, annotations=None, span=None,
    ):  # fmt: skip
        construct(
            self, iter_vars, reads, writes, name_hint, body, init, alloc_buffers or [],
            match_buffers or [], annotations or {}, span,
        )  # fmt: skip


@register_node("tir.Allocate")
class Allocate(Stmt):
    def __init__(self, buffer_var, dtype, extents, condition, body, annotations=None, span=None):
        construct(self, buffer_var, dtype, extents, condition, body, annotations or {}, span)


@register_node("tir.SeqStmt")
class SeqStmt(Stmt):
    def __getitem__(self, i):
        return self.seq[i]

    def __len__(self):
        return len(self.seq)


def stmt_seq(*args):
    """Statements (or expressions to evaluate) one after the other."""
    evaluate, seq_stmt = _derived("Evaluate"), _derived("SeqStmt")
    stmts = [a if isinstance(a, Stmt) else evaluate(a) for a in args]
    return stmts[0] if len(stmts) == 1 else seq_stmt(stmts)


def stmt_list(stmt):
    """The statements of a sequence, flat."""
    if isinstance(stmt, SeqStmt):
        return [s for part in stmt for s in stmt_list(part)]
    return [stmt]


__all__ = [
    "Allocate",
    "AllocateConst",
    "Block",
    "For",
    "ForKind",
    "SeqStmt",
    "Stmt",
    "stmt_list",
    "stmt_seq",
]


def __getattr__(name):
    return _derived(name)
