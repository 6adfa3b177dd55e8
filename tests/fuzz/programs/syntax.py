# SPDX-License-Identifier: Apache-2.0
"""Parts of programs that can be written but not run: operators of GPUs, reductions of te."""

from tvm import tir
from tvm.ir import Op, PointerType, PrimType, Range
from tvm.tir import IterVar, Var

from .expressions import call, const


def add_syntax(maker):
    """A statement with nodes that only printing, parsing and serialization understand."""
    rng = maker.rng
    makers = [_reduce, _opaque_call, _opaque_call, _string_call, _storage_types]
    stmts = [tir.Evaluate(rng.choice(makers)(maker)) for _ in range(rng.randint(2, 4))]
    return tir.SeqStmt(stmts)


def _reduce(maker):
    x, y = Var("x", "float32"), Var("y", "float32")
    combine = maker.rng.choice([tir.Add, tir.Max])
    reducer = tir.CommReducer([x], [y], [combine(x, y)], [const(0, "float32")])
    axis = IterVar(Range(0, 4), Var(maker.name("k"), "int32"), IterVar.CommReduce)
    return tir.Reduce(reducer, [tir.Cast("float32", axis.var)], [axis], tir.const(True, "bool"), 0)


def _opaque_call(maker):
    """Any operator with any arguments."""
    names = [n for n in Op.list_op_names() if n.startswith("tir.")]
    dtype = maker.rng.choice(["int32", "float32", "handle", "void", "bool"])
    args = [maker.index().node for _ in range(maker.rng.randint(0, 4))]
    annotations = {"note": 1} if maker.chance(0.1) else None
    return tir.Call(dtype, Op.get(maker.rng.choice(names)), args, annotations=annotations)


def _string_call(maker):
    return call(
        "int32", "call_extern", tir.StringImm('a "quoted"\ttext\\'), maker.exact("float32").node
    )


def _storage_types(maker):
    dtype = maker.rng.choice(["float8_e8m0fnu", "int4", "uint4", "float4_e2m1fnx2", "uint1"])
    pointer = Var(maker.name("q"), PointerType(PrimType(dtype), "shared"))
    return tir.Let(pointer, call("handle", "tvm_stack_alloca", const(1, "int32")), pointer)
