# SPDX-License-Identifier: Apache-2.0
"""Smaller programs that still fail: delta debugging on the IR."""

import math

import tvm_ffi

from tvm import tir
from tvm.ir import IRModule, Op
from tvm.tir import PrimExpr, PrimFunc, Stmt

__all__ = ["minimise"]

_TRUE = tir.const(True, "bool")


def _simpler_stmts(s):
    """Replacements of a statement, the smallest first."""
    nothing = tir.Evaluate(tir.const(0, "int32"))
    if isinstance(s, tir.Evaluate) and isinstance(s.value, tir.IntImm):
        return
    yield nothing
    if isinstance(s, tir.SeqStmt):
        stmts = list(s.seq)
        size = len(stmts) // 2
        while size:  # halves first, then single statements
            for i in range(0, len(stmts), size):
                rest = stmts[:i] + stmts[i + size :]
                if rest:
                    yield rest[0] if len(rest) == 1 else tir.SeqStmt(rest)
            size //= 2
    elif isinstance(s, tir.For):
        zero = s.min
        yield _substituted(s.body, {s.loop_var: zero})
        if int(s.kind) != 0:
            yield tir.For(s.loop_var, s.min, s.extent, 0, s.body, None, s.annotations, s.step)
        if not (isinstance(s.extent, tir.IntImm) and s.extent.value <= 1):
            one = tir.const(1, s.extent.dtype)
            yield tir.For(
                s.loop_var, s.min, one, int(s.kind), s.body, s.thread_binding, s.annotations
            )
        if s.step is not None or s.annotations:
            yield tir.For(s.loop_var, s.min, s.extent, int(s.kind), s.body, s.thread_binding)
    elif isinstance(s, tir.IfThenElse):
        yield s.then_case
        if s.else_case is not None:
            yield s.else_case
            yield tir.IfThenElse(s.condition, s.then_case)
    elif isinstance(s, tir.LetStmt):
        yield _substituted(s.body, {s.var: s.value})
    elif isinstance(s, tir.BlockRealize):
        yield from _simpler_block(s)
    elif isinstance(s, tir.BufferStore) and s.predicate is not None:
        yield tir.BufferStore(s.buffer, s.value, s.indices)
    elif hasattr(s, "body"):
        yield s.body


def _simpler_block(s):
    block = s.block
    values = {v.var: value for v, value in zip(block.iter_vars, s.iter_values, strict=True)}
    if not len(block.alloc_buffers) and not len(block.match_buffers):
        body = block.body if block.init is None else tir.SeqStmt(_flat([block.init, block.body]))
        yield _substituted(body, values)
    fields = {name: getattr(block, name) for name in _BLOCK_FIELDS}
    for name, empty in (
        ("annotations", {}),
        ("init", None),
        ("alloc_buffers", []),
        ("match_buffers", []),
    ):
        if fields[name] is not None and (name == "init" or len(fields[name])):
            yield tir.BlockRealize(s.iter_values, s.predicate, tir.Block(**{**fields, name: empty}))
    if not isinstance(s.predicate, tir.IntImm):
        yield tir.BlockRealize(s.iter_values, _TRUE, block)


_BLOCK_FIELDS = (
    "iter_vars", "reads", "writes", "name_hint", "body", "init", "alloc_buffers", "match_buffers",
    "annotations",
)  # fmt: skip


def _flat(stmts):
    return [x for s in stmts for x in (s.seq if isinstance(s, tir.SeqStmt) else [s])]


def _substituted(node, values):
    return tir.stmt_functor.substitute(node, values)


def _simpler_exprs(e):
    """Replacements of an expression by a constant or a part of the same type."""
    dtype = str(e.dtype)
    if isinstance(e, (tir.Var, tir.StringImm)) or dtype in ("", "void", "handle"):
        return
    if isinstance(e, (tir.IntImm, tir.FloatImm)):
        value = e.value
        if isinstance(e, tir.FloatImm) and not math.isfinite(value):
            return
        for smaller in (0, 1, int(value / 2)):
            if abs(smaller) < abs(value):
                yield tir.const(smaller, dtype)
        return
    scalar = str(tvm_ffi.dtype(dtype).with_lanes(1))
    lanes = tvm_ffi.dtype(dtype).lanes
    for number in (0, 1):
        made = tir.const(number, scalar)
        if lanes == 1:
            yield made
        elif not (isinstance(e, tir.Broadcast) and isinstance(e.value, (tir.IntImm, tir.FloatImm))):
            yield tir.Broadcast(made, lanes)
    parts = []

    def visit(child):
        if isinstance(child, PrimExpr) and str(child.dtype) == dtype:
            parts.append(child)

    for child in _children(e):
        visit(child)
    if isinstance(e, tir.Let):
        yield _substituted(e.body, {e.var: e.value})
        parts = parts[:1]
    yield from parts
    if isinstance(e, tir.Call) and len(e.args) == 2 and isinstance(e.op, Op):
        if all(str(a.dtype) == dtype for a in e.args):
            yield tir.Add(*e.args)
    if isinstance(e, tir.BufferLoad) and e.predicate is not None:
        yield tir.BufferLoad(e.buffer, e.indices)


def _children(e):
    for name in ("a", "b", "true_value", "false_value", "condition", "value", "base"):
        child = getattr(e, name, None)
        if child is not None:
            yield child
    for name in ("args", "vectors", "indices"):
        yield from getattr(e, name, None) or ()


def _candidates(func):
    """Functions that are one step smaller, the largest steps first."""
    nodes = []

    def visit(node):
        nodes.append(node)
        return not isinstance(node, tir.Buffer)  # its shape is what the arguments have

    tir.stmt_functor.pre_order_visit(func.body, visit)
    seen = set()
    for kind, simpler in ((Stmt, _simpler_stmts), (PrimExpr, _simpler_exprs)):
        for node in nodes:
            if isinstance(node, kind) and node not in seen:
                seen.add(node)
                for smaller in simpler(node):
                    yield node, smaller


def _replaced(func, node, smaller):
    def swap(n):
        return smaller if n.same_as(node) else None

    if func.body.same_as(node):
        return func.with_body(smaller)
    return func.with_body(tir.stmt_functor.ir_transform(func.body, swap, None))


def minimise(module, fails, limit=3000):
    """The module made smaller, step by step, as long as `fails(module)` is true.

    Statements are dropped, loops and blocks replaced by their bodies, expressions by constants and
    parts. `limit` bounds the calls of `fails`; what it raises counts as "does not fail".
    """
    calls = 0

    def still_fails(candidate):
        nonlocal calls
        calls += 1
        try:
            return bool(fails(candidate))
        except Exception:
            return False

    if not fails(module):
        raise ValueError("minimise: expected a module that fails, got one that does not")
    progress = True
    while progress and calls < limit:
        progress = False
        for var in list(module.functions):
            if var.name_hint != "main":
                rest = IRModule({v: f for v, f in module.functions.items() if v != var})
                if still_fails(rest):
                    module, progress = rest, True
        for var, func in list(module.functions.items()):
            if not isinstance(func, PrimFunc) or var not in module.functions:
                continue
            found = True
            while found and calls < limit:
                found = False
                for node, smaller in _candidates(func):
                    try:
                        made = _replaced(func, node, smaller)
                    except Exception:  # the replacement does not fit there
                        continue
                    candidate = IRModule({**dict(module.functions.items()), var: made})
                    if still_fails(candidate):
                        module, func, found, progress = candidate, made, True, True
                        break
                    if calls >= limit:
                        break
    return module
