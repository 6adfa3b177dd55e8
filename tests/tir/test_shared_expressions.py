# SPDX-License-Identifier: Apache-2.0
"""y = x + x, z = y + y, ...: a tree of 2^100 nodes made of 100. Work on it takes time for 100."""

import pytest
from tvm import arith, ir, tir


def doubled(leaf, times=100):
    for i in range(times):
        leaf = tir.Add(leaf, leaf) if i % 2 else tir.Max(leaf, tir.Add(leaf, 1))
    return leaf


X, Y = tir.Var("x", "int32"), tir.Var("y", "int32")


def test_substitute():
    moved = tir.stmt_functor.substitute(doubled(X), {X: Y})
    assert ir.structural_equal(moved, doubled(Y))


def test_equality():
    assert ir.structural_equal(doubled(X), doubled(X))
    assert ir.structural_equal(doubled(X), doubled(Y), map_free_vars=True)
    assert not ir.structural_equal(doubled(X), doubled(Y))
    assert ir.structural_hash(doubled(X)) == ir.structural_hash(doubled(X))
    assert tir.analysis.expr_deep_equal(doubled(X), doubled(X))
    assert not tir.analysis.expr_deep_equal(doubled(X), doubled(Y))


@pytest.mark.parametrize("visit", ["pre_order_visit", "post_order_visit"])
def test_visits(visit):
    seen = []
    getattr(tir.stmt_functor, visit)(tir.Evaluate(doubled(X)), lambda node: seen.append(node))
    assert len(seen) < 400


def test_transform():
    def swap(node):
        return tir.Sub(node.a, node.b)

    stmt = tir.stmt_functor.ir_transform(tir.Evaluate(doubled(X)), None, swap, ["tir.Add"])
    assert isinstance(stmt.value, tir.Sub)


def test_bounds():
    bound = arith.Analyzer().int_set(doubled(X, 40), {X: arith.IntervalSet(0, 0)})
    assert int(bound.min_value) == int(bound.max_value) > 0
