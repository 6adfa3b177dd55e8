# SPDX-License-Identifier: Apache-2.0
"""Short forms for the programs in tests of passes."""

import contextlib

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


def apply(transform, function, **config):
    """The function after a pass (or several, in a list), with options of passes by name."""
    mod = tvm.IRModule({"main": function})
    with tvm.transform.PassContext(config=config) if config else contextlib.nullcontext():
        for one in transform if isinstance(transform, (list, tuple)) else [transform]:
            mod = one(mod)
    return mod["main"]


def check(transform, before, expected):
    tvm.ir.assert_structural_equal(apply(transform, before), expected, map_free_vars=True)


def sum_rows(lowered):
    """C[i] = sum over k of A[i, k]"""
    A, C = buffer((4, 8), name="A"), buffer((4,), name="C")

    def body(i):
        def inner(k):
            vi, vk = tir.Var("vi", "int32"), tir.Var("vk", "int32")
            init = store(C, vi, 0.0)
            update = store(C, vi, C[vi] + A[vi, vk])
            iters = [(vi, 4, i), (vk, 8, k, "reduce")]
            if lowered:
                return block(iters, seq(when(vk == 0, init), update))
            return block(iters, update, init=init)

        return loop(8, inner, "k")

    return func([A, C], loop(4, body))


def two_stages(place):
    """B = A + 1, then C = B * 2, row by row; B allocated at `place`."""
    A, B, C = (buffer((4, 8), name=n) for n in "ABC")

    def stage(out, value, i, name):
        vi, vj = tir.Var("vi", "int32"), tir.Var("vj", "int32")
        return loop(
            8,
            lambda j: block(
                [(vi, 4, i), (vj, 8, j)], store(out, [vi, vj], value(vi, vj)), name=name
            ),
            "j",
        )

    def row(i):
        both = seq(
            stage(B, lambda a, b: A[a, b] + 1.0, i, "B"),
            stage(C, lambda a, b: B[a, b] * 2.0, i, "C"),
        )
        if place != "loop":
            return both
        full = (0, 8)
        return block(
            [],
            both,
            [region(A, i, full), region(B, i, full)],
            [region(B, i, full), region(C, i, full)],
            name="",
            alloc_buffers=[B],
        )

    outer = [B] if place == "root" else []
    return func([A, C], block([], loop(4, row), name="root", alloc_buffers=outer))


def plain(body, *buffers):
    """A function whose parameters are the data pointers of buffers."""
    for b in reversed(buffers):
        body = tir.DeclBuffer(b, body)
    return tir.PrimFunc([b.data for b in buffers], body)
