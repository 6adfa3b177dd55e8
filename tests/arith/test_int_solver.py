# SPDX-License-Identifier: Apache-2.0
"""Linear systems: the solutions before and after are the same, by enumeration."""

import pytest
from tvm import arith, tir
from tvm.arith import int_solver
from tvm.ir import Range, assert_structural_equal

from tests.arith.exact_evaluate import evaluate, points

x, y, z, n = (tir.Var(name, "int32") for name in "x y z n".split())


def R(low, extent):
    return Range.from_min_extent(low, extent)


def holds(relations, env):
    return all(evaluate(r, env) for r in relations)


EQUATIONS = [
    ([x + y == 7, x - y == 1], [x, y]),
    ([x + y == 7, x - y == 2], [x, y]),
    ([x * 2 + y * 3 == 7], [x, y]),
    ([x * 2 + y * 4 == 7], [x, y]),
    ([x + y + z == 5, x - z == 1], [x, y, z]),
    ([x * 6 + y * 10 + z * 15 == 1], [x, y, z]),
    ([x + y == 5, x * 2 + y * 2 == 10], [x, y]),
    ([x + y == 5, x + y == 6], [x, y]),
    ([x == y * 3], [x, y]),
]


@pytest.mark.parametrize("equations,variables", EQUATIONS, ids=range(len(EQUATIONS)))
def test_equations(equations, variables):
    domains = {v: (-8, 17) for v in variables}
    t = arith.solve_linear_equations(equations, variables, {v: R(*d) for v, d in domains.items()})
    solutions = {tuple(env.values()) for env in points(domains, tir.all(*equations))}
    new = {v: (t.dst.ranges[v].min.value, t.dst.ranges[v].extent.value) for v in t.dst.variables}
    found = set()
    for env in points(new):
        if holds(t.dst.relations, env):
            found.add(tuple(evaluate(t.src_to_dst[v], env) for v in variables))
    assert found == solutions
    for values in solutions:
        env = dict(zip(variables, values, strict=True))
        back = {v: evaluate(e, env) for v, e in t.dst_to_src.items()}
        assert tuple(evaluate(t.src_to_dst[v], back) for v in variables) == values


def test_symbolic_right_hand_side():
    t = arith.solve_linear_equations([x + y == n, x - y == 2], [x, y])
    for value in range(-6, 7):
        if holds(t.dst.relations, {n: value}):
            sx, sy = (evaluate(t.src_to_dst[v], {n: value}) for v in (x, y))
            assert sx + sy == value and sx - sy == 2
        else:
            assert value % 2 == 1


INEQUALITIES = [
    ([x + y <= 10, x >= 0, y >= 2], [x, y]),
    ([x + y <= 10, x >= 0, y >= 2, x >= y], [x, y]),
    ([x * 2 <= y, y <= 9, x >= -3], [x, y]),
    ([x * 3 + y * 2 <= 12, x >= -2, y >= -2], [x, y]),
    ([x < y, y < z, z < 6, x > 0], [x, y, z]),
    ([x > 5, x < 3], [x]),
    ([x == 4, y <= x, y >= 0], [x, y]),
]


@pytest.mark.parametrize("relations,variables", INEQUALITIES, ids=range(len(INEQUALITIES)))
@pytest.mark.parametrize("deskew", [False, True])
def test_inequalities(relations, variables, deskew):
    domains = (
        {v: (-20, 41) for v in variables}
        if len(variables) < 3
        else {v: (-2, 12) for v in variables}
    )
    expected = {tuple(env.values()) for env in points(domains, tir.all(*relations))}
    result = arith.solve_linear_inequalities(relations, variables, {}, deskew)
    system = result.dst if deskew else result
    found = set()

    def visit(rest, env):
        if not rest:
            if holds(system.relations, env):
                found.add(
                    tuple(
                        evaluate(result.src_to_dst[v], env) if deskew else env[v] for v in variables
                    )
                )
            return
        r = system.ranges[rest[0]]
        low, extent = evaluate(r.min, env), evaluate(r.extent, env)
        assert not deskew or low == 0
        for value in range(low, low + extent):
            visit(rest[1:], {**env, rest[0]: value})

    visit(list(system.variables), {})
    if not system.variables and variables and not expected:
        assert not holds(system.relations, {})
    else:
        assert found == expected


def test_group_bounds():
    bounds = int_solver.IntGroupBounds.from_range(R(3, 5))
    assert [e.value for e in bounds.lower] == [3] and [e.value for e in bounds.upper] == [7]
    assert_structural_equal(bounds.find_best_range(), R(3, 5))
    best = int_solver.IntGroupBounds(2, [1], [], [9, 21]).find_best_range()
    assert (best.min.value, best.extent.value) == (1, 4)
    assert int_solver.IntGroupBounds(1, [1], [], []).find_best_range() is None
    with pytest.raises(ValueError, match="IntGroupBounds: expected a positive coefficient, got 0"):
        int_solver.IntGroupBounds(0, [], [], [])


def test_errors():

    with pytest.raises(TypeError, match="expected bool relations, got int32"):
        arith.solve_linear_equations([x + 1], [x])
    with pytest.raises(TypeError, match="expected variables of type int32 or int64"):
        arith.solve_linear_equations([], [tir.Var("u", "uint8")])
    system = arith.IntConstraints([x], {}, [x == 3])
    assert_structural_equal(arith.solve_linear_equations(system).src_to_dst[x], tir.const(3))


def test_detect_linear_equation():
    c = arith.detect_linear_equation(x * 3 + y * n + 5, [x, y])
    for got, expected in zip(c, [tir.const(3), n, tir.const(5)], strict=True):
        assert_structural_equal(got, expected)
    twice = arith.detect_linear_equation(x * 3 + 1, [x, x])  # the last one counts
    assert [e.value for e in twice] == [0, 3, 1]
    assert len(arith.detect_linear_equation(x * y, [x, y])) == 0
    assert len(arith.detect_linear_equation(tir.floordiv(x, 2), [x])) == 0
    assert_structural_equal(arith.detect_linear_equation(x * y, [x])[0], y)
    assert [e.value for e in arith.detect_linear_equation((x + 1) * 2 - x * 2, [x])] == [0, 2]


def test_detect_clip_bound():
    bounds = arith.detect_clip_bound(tir.all(x >= 3, x < 10, y < 5, x <= n), [x, y])
    assert bounds[0].value == 3 and bounds[2] is None and bounds[3].value == 4
    assert_structural_equal(bounds[1], tir.min(9, n))
    assert len(arith.detect_clip_bound(x + y < 3, [x, y])) == 0
    assert len(arith.detect_clip_bound(tir.any(x < 3, x > 5), [x])) == 0


def test_detect_common_subexpr():
    counts = arith.detect_common_subexpr((x + y) * (x + y) + tir.floordiv(x + y, 3), 2)
    ((part, count),) = counts.items()
    assert_structural_equal(part, x + y)
    assert count == 3
    assert len(arith.detect_common_subexpr((x + y) * (x + y), 3)) == 0
    with pytest.raises(ValueError, match="expected a positive threshold, got 0"):
        arith.detect_common_subexpr(x, 0)
