# SPDX-License-Identifier: Apache-2.0
"""Iterator maps: what is detected is checked by enumeration of the iterations."""

import itertools

import pytest
from tvm import arith, tir
from tvm.arith.iter_affine_map import IterMapLevel
from tvm.ir import Range, assert_structural_equal
from tvm.tir import floordiv as fld
from tvm.tir import floormod as flm

from tests.arith.exact_evaluate import evaluate, points

i, j, k, n, m, a, b, c = (tir.Var(name, "int32") for name in "i j k n m a b c".split())


def R(low, extent):
    return Range.from_min_extent(low, extent)


def iters(domains):
    return {v: R(*d) for v, d in domains.items()}


MAPS = [
    # indices, domains, predicate, bijective?, surjective?
    ([i * 4 + j], {i: (0, 3), j: (0, 4)}, True, True, True),
    ([i * 5 + j], {i: (0, 3), j: (0, 4)}, True, False, False),
    ([i + j], {i: (0, 3), j: (0, 4)}, True, False, False),
    ([i, j], {i: (0, 3), j: (0, 4)}, True, True, True),
    ([i], {i: (0, 3), j: (0, 4)}, True, False, True),
    ([i, i], {i: (0, 3)}, True, False, False),
    ([i + 7], {i: (-2, 5)}, True, True, True),
    ([fld(i, 4), flm(i, 4)], {i: (0, 16)}, True, True, True),
    ([fld(i, 4), flm(i, 4) * 3 + j], {i: (0, 16), j: (0, 3)}, True, True, True),
    ([flm(i, 4) * 3 + j, fld(i, 4)], {i: (0, 16), j: (0, 3)}, True, True, True),
    ([i, flm(i, 4) * 3 + j], {i: (0, 16), j: (0, 3)}, True, False, False),
    ([flm(i, 4)], {i: (0, 16)}, True, False, True),
    ([fld(i, 4)], {i: (0, 16)}, True, False, True),
    ([fld(i, 4), flm(i, 4)], {i: (0, 18)}, True, False, False),
    ([fld(i, 4)], {i: (0, 18)}, True, False, True),
    ([fld(i * 8 + j, 4), flm(i * 8 + j, 4)], {i: (0, 4), j: (0, 8)}, True, True, True),
    (
        [fld(i * 8 + j, 16), flm(fld(i * 8 + j, 2), 8), flm(j, 2)],
        {i: (0, 4), j: (0, 8)},
        True,
        None,
        None,
    ),
    ([fld(i, 6), flm(fld(i, 2), 3), flm(i, 2)], {i: (0, 24)}, True, True, True),
    ([fld(i, 6), flm(i, 3)], {i: (0, 24)}, True, False, True),
    ([fld(i, 2), flm(i, 3)], {i: (0, 24)}, True, False, False),
    ([fld(i, 4), flm(i, 4) * 8 + j], {i: (0, 12), j: (0, 8)}, True, True, True),
    ([flm(i, 4), flm(i, 4) * 8 + j], {i: (0, 12), j: (0, 8)}, True, False, False),
    ([i * 4 + j], {i: (0, 3), j: (0, 4)}, i * 4 + j < 10, True, True),
    ([i, j], {i: (0, 3), j: (0, 4)}, i * 4 + j < 10, False, False),
    ([i], {i: (0, 10)}, tir.all(i < 7, i >= 2), True, True),
    ([i - 2, j], {i: (0, 10), j: (0, 3)}, tir.all(i < 7, i >= 2), True, True),
    ([fld(i * 4 + j, 2), flm(j, 2)], {i: (0, 3), j: (0, 4)}, i * 4 + j < 10, None, None),
    # a limit on a part of what is limited as a whole
    (
        [fld(i * 16 + j, 8), flm(i * 16 + j, 8)],
        {i: (0, 3), j: (0, 16)},
        tir.all(i * 16 + j < 40, flm(i * 16 + j, 8) < 3),
        True,
        True,
    ),
    (
        [fld(i * 16 + j, 32), flm(i * 16 + j, 32)],
        {i: (0, 4), j: (0, 16)},
        flm(i * 16 + j, 32) < 5,
        None,
        None,
    ),
    ([fld(i + 4, 4), flm(i, 4)], {i: (0, 16)}, True, True, True),
    ([i * 2], {i: (0, 5)}, True, True, True),
    ([i * 8 + j * 2], {i: (0, 3), j: (0, 4)}, True, True, True),
    ([i * j], {i: (0, 3), j: (0, 4)}, True, False, False),
    ([i * 4 + j, k], {i: (0, 3), j: (0, 4), k: (0, 1)}, True, True, True),
]


@pytest.mark.parametrize(
    "indices,domains,predicate,bijective,surjective", MAPS, ids=range(len(MAPS))
)
def test_detect(indices, domains, predicate, bijective, surjective):
    for level, expected in (
        (IterMapLevel.Bijective, bijective),
        (IterMapLevel.Surjective, surjective),
    ):
        result = arith.detect_iter_map(indices, iters(domains), predicate, level)
        found = len(result.indices) > 0
        assert found == (not result.errors)
        if expected is not None:
            assert found == expected, list(result.errors)
        if not found:
            continue
        envs = list(points(domains, predicate))
        values = [tuple(evaluate(e, env) for e in indices) for env in envs]
        maps = [arith.normalize_iter_map_to_expr(s) for s in result.indices]
        assert values == [tuple(evaluate(e, env) for e in maps) for env in envs]
        # The values fill the box that the extents and scales say.
        axes = []
        for s in result.indices:
            base = evaluate(s.base, {})
            assert len(s.args) <= 1
            axes.append(
                [base + evaluate(p.scale, {}) * v for p in s.args for v in range(p.extent.value)]
                or [base]
            )
        assert set(values) == set(itertools.product(*axes))
        if level == IterMapLevel.Bijective:
            assert len(set(values)) == len(values)
            outputs = [a, b, c][: len(indices)]
            inverse = arith.inverse_affine_iter_map(result.indices, outputs)
            for env, value in zip(envs, values, strict=True):
                outer = dict(zip(outputs, value, strict=True))
                assert all(
                    evaluate(e, outer) == env[next(w for w in env if w.same_as(v))]
                    for v, e in inverse.items()
                )


def test_symbolic_extents():
    result = arith.detect_iter_map(
        [i * n + j], {i: R(0, m), j: R(0, n)}, True, IterMapLevel.Bijective
    )
    assert len(result.indices) == 1
    assert_structural_equal(result.indices[0].args[0].extent, n * m, map_free_vars=True)
    result = arith.detect_iter_map([fld(i * n + j, n), flm(i * n + j, n)], {i: R(0, m), j: R(0, n)})
    assert [arith.normalize_iter_map_to_expr(s).name_hint for s in result.indices] == ["i", "j"]
    domains = {i: R(0, m), j: R(0, n)}
    (e,) = arith.iter_map_simplify([fld(i * n + j, n) * n + flm(i * n + j, n)], domains)
    assert_structural_equal(e, i * n + j)


def test_padding():
    domains = {i: (0, 18)}
    result = arith.detect_iter_map(
        [fld(i, 4), flm(i, 4)], iters(domains), True, IterMapLevel.NoCheck
    )
    inverse = arith.inverse_affine_iter_map(result.indices, [a, b])
    reached = {(v // 4, v % 4) for v in range(18)}
    (value,) = inverse.values()
    padding = tir.stmt_functor.substitute(result.padding_predicate, {i: value})
    for p in itertools.product(range(5), range(4)):
        assert bool(evaluate(padding, {a: p[0], b: p[1]})) == (p not in reached)


def test_simplify():
    domains = iters({i: (0, 3), j: (0, 4)})
    (e,) = arith.iter_map_simplify([fld(i * 4 + j, 4) * 4 + flm(i * 4 + j, 4)], domains)
    assert_structural_equal(e, i * 4 + j)
    (e,) = arith.iter_map_simplify([fld(i * 4 + j, 4) * 3], domains)
    assert_structural_equal(e, i * 3)


def test_normalize_to_iter_sum():
    s = arith.normalize_to_iter_sum(j + i * 4 + n, iters({i: (0, 3), j: (0, 4)}))
    assert [p.scale.value for p in s.args] == [4, 1]
    assert_structural_equal(s.base, n)
    s = arith.normalize_to_iter_sum(tir.max(i, j) * 2 + i * 64, iters({i: (0, 3), j: (0, 4)}))
    assert [p.scale.value for p in s.args] == [64, 2]
    assert s.args[1].source.extent.value == 4


@pytest.mark.parametrize(
    "bindings,sub",
    [
        ([i * 8 + j * 4 + k], [j, k]),
        ([i * 8 + j * 4 + k], [k]),
        ([i, j * 4 + k], [k]),
        ([i, j * 4 + k], []),
        ([i * 2 + j, k], [i, j, k]),
    ],
    ids=range(5),
)
def test_subspace_divide(bindings, sub):
    domains = {i: (0, 4), j: (0, 2), k: (0, 4)}
    result = arith.subspace_divide(bindings, iters(domains), sub)
    assert len(result) == len(bindings) + 1
    for env in points(domains):
        for binding, (outer, inner) in zip(bindings, result, strict=False):
            o, n_ = (arith.normalize_iter_map_to_expr(part.source) for part in (outer, inner))
            outside = {v: 0 if any(v.same_as(s) for s in sub) else w for v, w in env.items()}
            inside = {v: w if any(v.same_as(s) for s in sub) else 0 for v, w in env.items()}
            value = evaluate(o, outside) * inner.extent.value + evaluate(n_, inside)
            assert value == evaluate(binding, env)
            assert 0 <= evaluate(n_, inside) < inner.extent.value
            assert 0 <= evaluate(o, outside) < outer.extent.value


def test_subspace_that_cannot_be_divided():
    assert len(arith.subspace_divide([j * 4 + i], iters({i: (0, 4), j: (0, 2)}), [j])) == 0


def test_errors():
    f = tir.Var("f", "int8")
    with pytest.raises(
        TypeError,
        match="detect_iter_map: expected iterators of type int32 or int64, got f of type int8",
    ):
        arith.detect_iter_map([f], {f: R(tir.const(0, "int8"), tir.const(4, "int8"))})
    with pytest.raises(ValueError, match="check_level: expected 0"):
        arith.detect_iter_map([i], iters({i: (0, 4)}), True, 2)
    with pytest.raises(ValueError, match="expected 1 outputs, one per index, got 2"):
        arith.inverse_affine_iter_map(
            arith.detect_iter_map([i], iters({i: (0, 4)})).indices, [a, b]
        )
    with pytest.raises(ValueError, match="expected one of bijective, surjective, nocheck, got 'x'"):
        IterMapLevel.from_str("x")
    assert IterMapLevel.from_str("bijective") == IterMapLevel.Bijective
