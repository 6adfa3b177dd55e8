# SPDX-License-Identifier: Apache-2.0
"""Interval sets, regions and deduced bounds, checked by enumeration."""

import itertools

import pytest
import tvm
from tvm import arith, tir
from tvm.arith.int_set import neg_inf, pos_inf, union_lower_bound
from tvm.ir import Range, assert_structural_equal
from tvm.tir import floordiv as fld
from tvm.tir import floormod as flm

from tests.arith.exact_evaluate import evaluate, points

i, j, k, n, x, y = (tir.Var(name, "int32") for name in "i j k n x y".split())


def interval(low, high):
    return arith.IntervalSet(low, high)


EXPRS = [
    x + y,
    x - y * 2,
    x * -3 + 1,
    fld(x, 3) - y,
    flm(x, 4) + y,
    tir.truncdiv(x, -2),
    tir.truncmod(x, 3),
    tir.min(x, y) * 2,
    tir.max(x - 3, y),
    tir.Select(x < y, x, y + 2),
    tir.if_then_else(x < y, x * 2, y),
    flm(x + 16, 64),
    x * y,
]


@pytest.mark.parametrize("e", EXPRS, ids=range(len(EXPRS)))
@pytest.mark.parametrize("low,extent", [(0, 6), (-5, 9)])
def test_set_covers_every_value(e, low, extent):
    domains = {x: interval(low, low + extent - 1), y: interval(-1, 3)}
    s = arith.Analyzer().int_set(e, domains)
    values = [evaluate(e, env) for env in points({x: (low, extent), y: (-1, 5)})]
    if not s.is_everything():
        assert evaluate(s.min_value, {}) <= min(values) and max(values) <= evaluate(s.max_value, {})


def test_symbolic_ends():
    s = arith.Analyzer().int_set(i * 4 + j, {i: interval(0, n - 1), j: interval(0, 3)})
    assert_structural_equal(s.min_value, tir.const(0))
    assert_structural_equal(s.max_value, n * 4 - 1)
    s = arith.Analyzer().int_set(i + k, {i: interval(0, j), j: interval(0, 3)})
    assert_structural_equal(s.max_value, k + 3)
    assert arith.Analyzer().int_set(x * y, {x: interval(0, 3)}).is_everything()


def test_special_sets():
    assert arith.IntervalSet(3, 2).is_nothing()
    assert arith.IntervalSet(neg_inf(), pos_inf()).is_everything()
    point = arith.IntSet.single_point(x)
    assert point.min_value.same_as(x) and point.max_value.same_as(x)
    lanes = arith.IntSet.vector(tir.Ramp(x, tir.const(2), 4))
    assert_structural_equal(lanes.max_value, x + 6)
    assert isinstance(lanes, arith.IntervalSet) and isinstance(lanes, arith.IntSet)
    touching = union_lower_bound([interval(0, 3), interval(4, 9)])
    assert (touching.min_value.value, touching.max_value.value) == (0, 9)
    assert union_lower_bound([interval(0, 3), interval(6, 9)]).is_nothing()
    with pytest.raises(TypeError, match="IntervalSet: expected integer ends, got float32"):
        arith.IntervalSet(tir.const(1.0, "float32"), 2)


def R(low, extent):
    return Range.from_min_extent(low, extent)


REGIONS = [
    ([(i * 4 + j, 1)], {i: (0, 3), j: (0, 4)}, True),
    ([(i * 4 + j, 3)], {i: (0, 3), j: (0, 4)}, True),
    ([(i * 4, 2)], {i: (0, 3)}, True),
    ([(i * 2, 2), (j + 3, 1)], {i: (1, 3), j: (0, 4)}, True),
    ([(i, 1), (i, 1)], {i: (0, 4)}, True),
    ([(fld(i, 4), 1), (flm(i, 4), 1)], {i: (0, 16)}, True),
    ([(fld(i, 4), 1), (flm(i, 4), 1)], {i: (0, 14)}, True),
    ([(i * 4 + j, 1)], {i: (0, 3), j: (0, 4)}, i * 4 + j < 10),
    ([(i, 1), (j, 1)], {i: (0, 3), j: (0, 4)}, i * 4 + j < 10),
    ([(i + 1, 2)], {i: (0, 9)}, tir.all(i < 5, i >= 2)),
    ([(10 - i, 1)], {i: (0, 9)}, True),
    ([(i + j, 1)], {i: (0, 3), j: (0, 4)}, True),
    ([(tir.min(i, 5), 1)], {i: (0, 9)}, True),
]


@pytest.mark.parametrize("region,domains,predicate", REGIONS, ids=range(len(REGIONS)))
def test_estimated_regions(region, domains, predicate):
    ranges = [R(m, e) for m, e in region]
    var_dom = {v: R(*d) for v, d in domains.items()}
    covered = set()
    for env in points(domains, predicate):
        covered |= set(
            itertools.product(*(range(evaluate(m, env), evaluate(m, env) + e) for m, e in region))
        )

    def box(sets):
        return set(
            itertools.product(*(range(s.min_value.value, s.max_value.value + 1) for s in sets))
        )

    predicate = tir.const(predicate) if isinstance(predicate, bool) else predicate
    assert covered <= box(arith.estimate_region_upper_bound(ranges, var_dom, predicate))
    for estimate in (arith.estimate_region_lower_bound, arith.estimate_region_strict_bound):
        exact = estimate(ranges, var_dom, predicate)
        assert exact is None or box(exact) == covered


def test_exact_regions_are_found():
    var_dom = {i: R(0, 3), j: R(0, 4)}
    true = tir.const(True)
    assert arith.estimate_region_strict_bound([R(i * 4 + j, 1)], var_dom, true) is not None
    assert (
        arith.estimate_region_strict_bound([R(i * 4 + j, 1)], var_dom, i * 4 + j < 10) is not None
    )
    assert arith.estimate_region_strict_bound([R(i * 4, 2)], {i: R(0, 3)}, true) is None


CONDITIONS = [
    x * 4 + y < 100,
    x * 4 + y >= 37,
    y - x * 3 <= 5,
    fld(x, 4) >= 3,
    fld(x + y, 3) < 7,
    10 - x > y,
    tir.min(x, 20) > y + 3,
    tir.max(x, y) < 12,
    tir.all(x > 3, x + y < 20),
    x + y == 7,
    y < 3,
]


@pytest.mark.parametrize("cond", CONDITIONS, ids=range(len(CONDITIONS)))
def test_deduced_bound_is_safe(cond):
    s = arith.deduce_bound(x, cond, {}, {y: interval(-2, 3)})
    inside = range(-60, 60)
    for value in inside:
        low = s.is_nothing() or (
            s.min_value.__class__.__name__ != "StringImm" and value < s.min_value.value
        )
        high = s.is_nothing() or (
            s.max_value.__class__.__name__ != "StringImm" and value > s.max_value.value
        )
        always = all(evaluate(cond, {x: value, y: w}) for w in range(-2, 4))
        if not (low or high):
            assert always, f"{value} is in the set but the condition fails"


def test_deduced_bound_is_tight():
    s = arith.deduce_bound(x, x * 4 + y < 100, {}, {y: interval(0, 3)})
    assert s.max_value.value == 24
    s = arith.deduce_bound(x, x * n < 100, {n: interval(3, 10)}, {})
    assert_structural_equal(s.max_value, fld(99, n))
    with pytest.raises(TypeError, match="deduce_bound: expected a bool condition, got int32"):
        arith.deduce_bound(x, x + 1, {}, {})


def test_names_are_in_their_modules_too():
    from tvm.arith import bound, int_set, int_solver, iter_affine_map, pattern

    assert int_set.estimate_region_upper_bound is tvm.arith.estimate_region_upper_bound
    assert int_solver.IntConstraintsTransform is tvm.arith.IntConstraintsTransform
    assert pattern.detect_linear_equation is tvm.arith.detect_linear_equation
    assert tvm.arith.bound is bound and tvm.arith.iter_affine_map is iter_affine_map
    assert tvm.ir.type.TupleType([]) == tvm.ir.TupleType([])
