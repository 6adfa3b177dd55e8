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
    (truncdiv(x, 8) > -2, tir.LE(-15, x)),
    (truncdiv(x, 8) * 8 < x, tir.LE(1, truncmod(x, 8))),
    (truncdiv(x, 8) * 8 < x - y, y < truncmod(x, 8)),
    (max_(truncdiv(x, 8), truncdiv(y, 8)), truncdiv(max_(x, y), 8)),
    (min_(floordiv(x, -8), floordiv(y, -8)), floordiv(max_(x, y), -8)),
    (x <= floordiv(x, 8) * 8, tir.EQ(floormod(x, 8), 0)),
    (tir.all(tir.EQ(floordiv(x, 8), 2), tir.EQ(floormod(x, 8), 3)), tir.EQ(x, 19)),
]


@pytest.mark.parametrize(("given", "expected"), CASES, ids=lambda e: str(e)[:40])
def test_simplified(given, expected):
    expected = tir.convert(expected)
    tvm.ir.assert_structural_equal(arith.Analyzer().simplify(given), expected)
    for values in itertools.product(range(-19, 20, 3), repeat=3):
        named = dict(zip((x, y, z), values, strict=True))
        assert evaluate(given, named) == evaluate(expected, named), values


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
