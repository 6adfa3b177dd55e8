# SPDX-License-Identifier: Apache-2.0
"""Bindings that only give another name, casts that say nothing new, items of known tuples."""

import pytest
from tvm import relax, tir
from tvm.relax import TensorStructInfo as T
from tvm.relax import transform

from tests.relax.transform.bindings import F32, build, f, g, same


def test_canonicalize_names():
    def before(bb, x):
        y = bb.emit(x)
        with bb.dataflow():
            a = bb.emit(f(y))
            b = bb.emit(a)
            c = bb.emit_output(g(b))
            d = bb.emit_output(b)
        return bb.emit(f(c, d))

    def expected(bb, x):
        with bb.dataflow():
            a = bb.emit(f(x))
            c = bb.emit_output(g(a))
            d = bb.emit_output(a)
        return bb.emit(f(c, d))

    def better(bb, x):
        with bb.dataflow():
            d = bb.emit_output(f(x))
            c = bb.emit_output(g(d))
        return bb.emit(f(c, d))

    after = transform.CanonicalizeBindings()(build(before))
    same(transform.CanonicalizeBindings()(after), build(better))
    same(transform.CanonicalizeBindings()(build(expected)), build(better))


def test_canonicalize_tuples_and_casts():
    def before(bb, x):
        t = bb.emit(relax.Tuple([x, f(x)]))
        a, b = bb.emit(t[0]), bb.emit(t[1])
        c = bb.match_cast(b, T(dtype="float32", ndim=2))
        return bb.emit(relax.Tuple([a, c]))

    def expected(bb, x):
        y = bb.emit(f(x))
        t = bb.emit(relax.Tuple([x, y]))
        return bb.emit(relax.Tuple([x, y])) if t is None else bb.emit(relax.Tuple([x, y]))

    same(transform.CanonicalizeBindings()(build(before)), build(expected))

    def whole(bb, p):
        return bb.emit(relax.Tuple([bb.emit(p[0]), bb.emit(p[1])]))

    pair = relax.TupleStructInfo([F32, F32])
    mod = build(whole, params=[relax.Var("p", pair)])
    after = transform.DeadCodeElimination()(transform.CanonicalizeBindings()(mod))
    same(after, build(lambda bb, p: p, params=[relax.Var("p", pair)]))


def test_canonicalize_symbolic_variables():
    def before(bb, x):
        n = tir.Var("n", "int64")
        y = bb.match_cast(x, T([n, 3], "float32"))
        return bb.emit(relax.Tuple([y, relax.ShapeExpr([n * 2])]))

    def expected(bb, x):
        return bb.emit(relax.Tuple([x, relax.ShapeExpr([4])]))

    after = transform.CanonicalizeBindings()(build(before))
    assert after["main"].ret_struct_info.fields[0] == F32

    def contradiction(bb, x):
        n = tir.Var("n", "int64")
        bb.match_cast(x, T([n, 3], "float32"))
        y = bb.match_cast(x, T([2, n], "float32"))
        return y

    with pytest.raises(ValueError, match="MatchCast statements must be consistent"):
        transform.CanonicalizeBindings()(build(contradiction))
