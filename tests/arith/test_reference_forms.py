# SPDX-License-Identifier: Apache-2.0
"""Simplifications that scripts compare with, each checked on numbers, too."""

import itertools

import pytest
import tvm
from tvm import arith, tir
from tvm.tir import floordiv, floormod, truncdiv, truncmod
from tvm.tir import max as max_
from tvm.tir import min as min_

from tests.arith.exact_evaluate import evaluate

x, y, z = (tir.Var(name, "int32") for name in "xyz")

CASES = [
    (floormod(x - floormod(x, z), z), 0),
    (y - floordiv(y + 3, 8) * 8, floormod(y + 3, 8) - 3),
    (floordiv(y + 3, 8) * 8 - y, 3 - floormod(y + 3, 8)),
    (y - floordiv(y + z, 8) * 8, floormod(y + z, 8) - z),
    (floordiv(y, 8) * 8 - y, floormod(y, 8) * -1),
    (floordiv(floormod(x, 2) + 1, 2), floormod(x, 2)),
    (floordiv(x, 2) + floormod(x, 2), floordiv(x + 1, 2)),
    (floormod(x, 2) + floormod(x + 1, 2), 1),
    (floordiv(floormod(x, 8) + 5, 8) + floordiv(x, 8), floordiv(x + 5, 8)),
    (floordiv(min_(x * 8, y), 4), min_(x * 2, floordiv(y, 4))),
    (floordiv(max_(x * 8, y), 4), max_(x * 2, floordiv(y, 4))),
    (truncdiv(x, 8) < 2, x < 16),
    (truncdiv(x, 8) < -2, x < -23),
    (truncdiv(x, 8) > -2, tir.LT(-16, x)),
    (truncdiv(x, 8) * 8 < x, tir.LT(0, truncmod(x, 8))),
    (truncdiv(x, 8) * 8 < x - y, y < truncmod(x, 8)),
    (max_(truncdiv(x, 8), truncdiv(y, 8)), truncdiv(max_(x, y), 8)),
    (min_(floordiv(x, -8), floordiv(y, -8)), floordiv(max_(x, y), -8)),
    (x <= floordiv(x, 8) * 8, tir.EQ(floormod(x, 8), 0)),
    (tir.all(tir.EQ(floordiv(x, 8), 2), tir.EQ(floormod(x, 8), 3)), tir.EQ(x, 19)),
    (y - floordiv(y - z, 8) * 8, floormod(y - z, 8) + z),
    (floordiv(x + 7, 8) * 8 >= x - y, floormod(x + 7, 8) <= y + 7),
    (floormod(x, 8) <= 0, tir.EQ(floormod(x, 8), 0)),
    (tir.EQ(truncdiv(x, 3), 2), tir.all(tir.LE(6, x), x < 9)),
    (tir.EQ(truncdiv(x, 3), -2), tir.all(tir.LT(-9, x), tir.LE(x, -6))),
    (truncdiv(x, -3) < 2, tir.LT(-6, x)),
    (tir.EQ(truncdiv(x, -3), 2), tir.all(tir.LT(-9, x), tir.LE(x, -6))),
    (truncdiv(x, 8) * 8 < x + y, tir.LT(0, truncmod(x, 8) + y)),
    # What a quotient and a remainder say together.
    (tir.all(tir.EQ(floordiv(x, 4), y), tir.EQ(floormod(x, 4), 1)), tir.EQ(x, y * 4 + 1)),
    (tir.all(tir.EQ(floordiv(x, 4), 3), floormod(x, 4) < 2), tir.all(tir.LE(12, x), x < 14)),
    (tir.all(x < 16, floormod(x, 4) < 2), tir.all(x < 14, floormod(x, 4) < 2)),
    (tir.all(x > 1, floormod(x, 4) < 2), tir.all(tir.LT(3, x), floormod(x, 4) < 2)),
    (tir.all(x - y * 4 >= 0, x - y * 4 < 4), tir.EQ(y, floordiv(x, 4))),
    # Chains of one operator.
    (tir.And(x < 3, tir.And(y < 4, z < 5)), tir.And(tir.And(x < 3, y < 4), z < 5)),
    (tir.Or(x < 3, tir.Or(y < 4, z < 5)), tir.Or(tir.Or(x < 3, y < 4), z < 5)),
    (max_(max_(max_(x, y), z), y), max_(max_(x, y), z)),
    (min_(z, min_(min_(x, z), y)), min_(min_(x, z), y)),
    (
        tir.if_then_else(x < 3, tir.if_then_else(y < 4, z, 7), 7),
        tir.if_then_else(tir.And(x < 3, y < 4), z, 7),
    ),
    (
        tir.if_then_else(x < 3, z, tir.if_then_else(y < 4, z, 7)),
        tir.if_then_else(tir.Or(x < 3, y < 4), z, 7),
    ),
    (tir.Cast("int64", x + 1) - tir.Cast("int64", x), tir.const(1, "int64")),
    # Comparisons keep their strictness; constants are added, on one side.
    (x > y, tir.LT(y, x)),
    (x >= y, tir.LE(y, x)),
    (x <= 5, tir.LE(x, 5)),
    (x > 5, tir.LT(5, x)),
    (x >= 5, tir.LE(5, x)),
    (tir.Not(x <= 5), tir.LT(5, x)),
    (x + 3 < y, tir.LT(x + 3, y)),
    (x - 3 < y, tir.LT(x, y + 3)),
    (x < y - 3, tir.LT(x + 3, y)),
    (x + 3 <= y, tir.LE(x + 3, y)),
    (x <= y - 3, tir.LE(x + 3, y)),
    (x + 5 < y + 3, tir.LT(x + 2, y)),
    (x - 1 < y, tir.LE(x, y)),
    (x <= y - 1, tir.LT(x, y)),
    (floordiv(x, 8) <= 3, tir.LE(x, 31)),
    (x * 8 <= 63, tir.LE(x, 7)),
    # Sums are factored to the left, minima and maxima keep their order.
    (x * y + 3 * x, (y + 3) * x),
    (tir.Max(tir.IntImm("int32", 5), x), tir.Max(tir.IntImm("int32", 5), x)),
]
COMPARISONS = [given for given, _ in CASES if isinstance(given, (tir.LT, tir.LE, tir.GT, tir.GE))]


@pytest.mark.parametrize(("given", "expected"), CASES, ids=lambda e: str(e)[:40])
def test_simplified(given, expected):
    expected = tir.convert(expected)
    tvm.ir.assert_structural_equal(arith.Analyzer().simplify(given), expected)
    for values in itertools.product(range(-19, 20, 3), repeat=3):
        named = dict(zip((x, y, z), values, strict=True))
        assert evaluate(given, named) == evaluate(expected, named), values


@pytest.mark.parametrize("given", COMPARISONS, ids=lambda e: str(e)[:40])
def test_canonical_comparisons(given):
    analyzer = arith.Analyzer()
    tvm.ir.assert_structural_equal(analyzer.canonical_simplify(given), analyzer.simplify(given))


def test_simplified_twice_is_the_same():
    """Spelling does not depend on what was asked before."""
    analyzer = arith.Analyzer()
    for given, _ in CASES:
        for _ in range(2):
            tvm.ir.assert_structural_equal(
                analyzer.simplify(given), arith.Analyzer().simplify(given)
            )


def test_known_ranges():
    analyzer = arith.Analyzer()
    analyzer.bind(x, tvm.ir.Range(1, 1024))
    analyzer.bind(y, tvm.ir.Range(0, 1024))
    assert analyzer.can_prove(x * y < (x + y) * 2048)
    rounded = min_(floordiv(x + 3, 4) * 4, max_(x, 4))
    tvm.ir.assert_structural_equal(analyzer.simplify(rounded), max_(x, 4))
    for i in range(1, 40):
        assert evaluate(rounded, {x: i}) == max(i, 4)


def test_truncated_quotients_of_vectors():
    simplify = arith.Analyzer().simplify
    four = tir.Broadcast(4, 4)
    ramp = tir.Ramp(x * 8, 8, 4)
    tvm.ir.assert_structural_equal(simplify(truncdiv(ramp, four)), tir.Ramp(x * 2, 2, 4))
    tvm.ir.assert_structural_equal(simplify(truncmod(ramp, four)), tir.Broadcast(0, 4))
    kept = truncdiv(tir.Ramp(x, 8, 4), four)  # lanes on both sides of 0 are rounded differently
    tvm.ir.assert_structural_equal(simplify(kept), kept)
    chain = min_(min_(tir.Ramp(y, 1, 4), tir.Broadcast(x, 4)), tir.Broadcast(3, 4))
    joined = min_(tir.Ramp(y, 1, 4), tir.Broadcast(min_(x, 3), 4))
    tvm.ir.assert_structural_equal(simplify(chain), joined)


DIVIDED = [  # by sizes, which are not 0
    (floordiv(x + z + y, z), floordiv(x + y, z) + 1),
    (floordiv(x * z * 3 + y, z * 3), x + floordiv(y, z * 3)),
    (floormod(x * z * 4, z * 4), 0),
    (floormod(x * z * 4 + y, z * 4), floormod(y, z * 4)),
    (floormod(x + z + y, z), floormod(x + y, z)),
]


@pytest.mark.parametrize(("given", "expected"), DIVIDED, ids=lambda e: str(e)[:40])
def test_divided_by_sizes(given, expected):
    analyzer = arith.Analyzer()
    analyzer.bind(z, tvm.ir.Range(1, 100))
    tvm.ir.assert_structural_equal(analyzer.simplify(given), tir.convert(expected))
    for values in itertools.product(range(-19, 20, 3), range(-19, 20, 3), range(1, 9)):
        named = dict(zip((x, y, z), values, strict=True))
        assert evaluate(given, named) == evaluate(tir.convert(expected), named), values


@pytest.mark.parametrize(
    ("given", "coeff", "base"),
    [
        (tir.shift_right(x * 8 + 4, tir.const(1, "int32")), 4, 2),
        (tir.Let(y, x * 4, y + 1), 4, 1),
        (truncmod(x * 8 + 1, 4), 4, 1),
        (tir.bitwise_and(x * 4 + 1, tir.const(7, "int32")), 4, 1),
    ],
    ids=str,
)
def test_residues(given, coeff, base):
    found = arith.Analyzer().modular_set(given)
    assert (int(found.coeff), int(found.base)) == (coeff, base)


def test_constant_leading_zeros():
    simplify = arith.Analyzer().simplify
    assert int(simplify(tir.clz(tir.const(8, "int32")))) == 28
    assert int(simplify(tir.clz(tir.const(8, "int64")))) == 60
    assert int(simplify(tir.clz(tir.const(0, "int32")))) == 32
    assert int(simplify(tir.clz(tir.const(-1, "int32")))) == 0


def test_solve_for_all_variables():
    solution = arith.solve_linear_equations([tir.EQ(x + y, 3)])
    assert list(solution.src.variables) == [x, y]


# ---- iterators split by sizes --------------------------------------------------------------------
n, m, k, f, o, i = (tir.Var(name, "int32") for name in "nmkfoi")


@pytest.mark.parametrize(
    ("indices", "extents", "predicate"),
    [
        ([floordiv(f, n), floormod(f, n)], {f: n * n}, True),
        ([floordiv(f, m), floormod(f, m)], {f: n * m}, True),
        ([floordiv(f, m * k), floormod(floordiv(f, k), m), floormod(f, k)], {f: n * m * k}, True),
        (
            [floordiv(f, m * k), floordiv(floormod(f, m * k), k), floormod(f, k)],
            {f: n * m * k},
            True,
        ),
        (
            [floordiv(o * 1024 + i, n), floormod(o * 1024 + i, n)],
            {o: floordiv(n * n + 1023, 1024), i: 1024},
            o * 1024 + i < n * n,
        ),
        (
            [floordiv(o * 1024 + i, 128), floormod(o * 1024 + i, 128)],
            {o: floordiv(n + 7, 8), i: 1024},
            o * 1024 + i < n * 128,
        ),
    ],
)
def test_iterators_are_split_by_sizes(indices, extents, predicate):
    domains = {v: tvm.ir.Range(0, e) for v, e in extents.items()}
    found = arith.detect_iter_map(indices, domains, predicate, "bijective")
    assert len(found.indices) == len(indices), list(found.errors)
    with pytest.raises(ValueError, match="check_level: expected 0 .bijective"):
        arith.detect_iter_map(indices, domains, predicate, "sometimes")
