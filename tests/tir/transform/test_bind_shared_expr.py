# SPDX-License-Identifier: Apache-2.0
"""Expressions that are small as objects and huge written out."""

import time

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.testing.features import host_target
from tvm.tir import transform as tt

from tests.fuzz.checks import single_passes


def doubled(e, times):
    for _ in range(times):
        e = tir.Add(e, e)
    return e


def function(value):
    A, B = (tir.decl_buffer((4,), "int32", name=n) for n in "AB")
    i = tir.Var("i", "int32")
    body = tir.BufferStore(B, value(i, A), [i])
    return tir.PrimFunc([A, B], tir.For(i, 0, 4, tir.ForKind.SERIAL, body))


def chosen(i, A):
    """Loads that only happen where they are chosen, and some that always do."""
    guarded = tir.if_then_else(i < 2, doubled(A[i + 2], 40), doubled(A[i], 2))
    return tir.Add(doubled(guarded, 30), doubled(A[i], 40))


# 2^40 nodes written out: nothing that looks at each of them ends.
CASES = {
    "variables": (lambda i, A: doubled(i + 1, 40), lambda i, a: 0 * a),
    "memory": (lambda i, A: doubled(A[i], 40) + doubled(A[i], 3), lambda i, a: 8 * a),
    "an index": (lambda i, A: A[tir.truncmod(doubled(i, 30), 4)], lambda i, a: a[0] + 0 * a),
    "choices": (chosen, lambda i, a: 0 * a),
}


@pytest.mark.parametrize("value, expected", CASES.values(), ids=CASES)
def test_compiles_in_the_time_of_its_nodes(value, expected):
    a, b = np.arange(4, dtype="int32"), np.zeros(4, "int32")
    begin = time.time()
    tvm.compile(function(value), target=host_target())(a, b)
    assert time.time() - begin < 30
    np.testing.assert_array_equal(b, expected(np.arange(4), a))


def polynomial(e, times):
    for _ in range(times):
        e = tir.Add(tir.Mul(e, e), tir.IntImm("int32", 3))
    return e


# Shared as a value, an index and a condition.
PLACES = {
    "value": lambda times: lambda i, A: polynomial(A[i], times),
    "index": lambda times: lambda i, A: A[tir.floormod(polynomial(i, times), 4)],
    "condition": lambda times: lambda i, A: tir.Select(polynomial(A[i], times) < 5, A[i], 0),
}


@pytest.mark.parametrize("name", sorted(single_passes()))
def test_each_pass_takes_the_time_of_the_nodes_there_are(name):
    """Twice the nodes, and 2^11 times as many written out."""
    for place in PLACES.values():
        seconds = []
        for times in (11, 22):
            mod = tvm.IRModule({"main": function(place(times))})
            mod = tt.BindTarget(tvm.target.Target("llvm"))(mod)
            one = single_passes()[name]()
            begin = time.process_time()
            one(mod)
            seconds.append(time.process_time() - begin)
        assert seconds[1] < 20 * seconds[0] + 0.1


def test_visiting():
    count = []
    tir.stmt_functor.post_order_visit(doubled(tir.Var("x", "int32"), 60), count.append)
    assert len(count) == 62  # the type of the variable, too


def test_small_ones_stay():
    func = function(lambda i, A: doubled(A[i] + 1, 3))
    mod = tvm.IRModule({"main": func})
    assert tt.BindSharedExpr()(mod)["main"].same_as(func)


CHOSEN = {
    "choice": (lambda c, e: tir.if_then_else(c, e, 0), lambda e: e),
    "and": (lambda c, e: tir.Cast("int32", tir.And(c, e > 5 << 13)), lambda e: e > 5 << 13),
    "or": (
        lambda c, e: tir.Cast("int32", tir.Not(tir.Or(tir.Not(c), e > 5 << 13))),
        lambda e: e <= 5 << 13,
    ),
}


@pytest.mark.parametrize("choose, expect", CHOSEN.values(), ids=CHOSEN)
def test_what_is_chosen_between_is_not_read_before(choose, expect):
    """A load under a condition stays there."""
    func = function(lambda i, A: choose(i < 2, doubled(A[i + 2], 14)))
    after = tt.BindSharedExpr()(tvm.IRModule({"main": func}))["main"]
    assert not after.same_as(func)
    a, expected, got = np.arange(4, dtype="int32"), np.zeros(4, "int32"), np.zeros(4, "int32")
    tir.interpret(after)(a, got)  # it refuses to read outside
    expected[:2] = expect(a[2:] << 14)
    np.testing.assert_array_equal(got, expected)
