# SPDX-License-Identifier: Apache-2.0
"""Short forms for the programs in tests of passes."""

import tvm
from tvm import tir


def buffer(shape, dtype="float32", name="A", **kwargs):
    return tir.decl_buffer(shape, dtype, name=name, **kwargs)


def loop(extent, body, name="i", kind="serial", begin=0, dtype="int32", **kwargs):
    """for name in range(begin, begin + extent): body(name)"""
    var = tir.Var(name, dtype)
    return tir.For(var, begin, extent, tir.ForKind[kind.upper()], body(var), **kwargs)


def store(buf, indices, value):
    indices = list(indices) if isinstance(indices, (list, tuple)) else [indices]
    return tir.BufferStore(
        buf, tir.const(value, buf.dtype) if isinstance(value, (int, float)) else value, indices
    )


def when(condition, then, otherwise=None):
    return tir.IfThenElse(condition, then, otherwise)


def seq(*stmts):
    return tir.SeqStmt(list(stmts))


def func(params, body, **attrs):
    return tir.PrimFunc(params, body, attrs=attrs)


def block(iters, body, reads=(), writes=(), name="block", predicate=True, **kwargs):
    """A realized block. iters: (variable, extent, value) or (variable, extent, value, "reduce")."""
    kinds = {
        "spatial": tir.IterVar.DataPar,
        "reduce": tir.IterVar.CommReduce,
        "scan": tir.IterVar.Ordered,
    }
    iter_vars, values = [], []
    for var, extent, value, *kind in iters:
        iter_vars.append(
            tir.IterVar(tvm.ir.Range(0, extent), var, kinds[kind[0] if kind else "spatial"])
        )
        values.append(value)
    inner = tir.Block(iter_vars, list(reads), list(writes), name, body, **kwargs)
    return tir.BlockRealize(
        values, tir.const(predicate, "bool") if isinstance(predicate, bool) else predicate, inner
    )


def region(buf, *ranges):
    """ranges: an index, or (begin, extent)."""
    made = [
        tvm.ir.Range.from_min_extent(*r)
        if isinstance(r, tuple)
        else tvm.ir.Range.from_min_extent(r, 1)
        for r in ranges
    ]
    return tir.BufferRegion(buf, made)


def apply(transform, function):
    """The function after a pass (or several, in a list)."""
    mod = tvm.IRModule({"main": function})
    for one in transform if isinstance(transform, (list, tuple)) else [transform]:
        mod = one(mod)
    return mod["main"]


def check(transform, before, expected):
    tvm.ir.assert_structural_equal(apply(transform, before), expected, map_free_vars=True)
