# SPDX-License-Identifier: Apache-2.0
"""Analyzer: the simplifications and proofs users rely on, and what it must not do."""

import time

import pytest
import tvm
from tvm import arith, tir
from tvm.arith import ConstIntBound, Extension, ProofStrength
from tvm.ir import Range, assert_structural_equal
from tvm.tir import floordiv as fld
from tvm.tir import floormod as flm

from tests.arith.exact_evaluate import evaluate, points

i, j, k, n, m, x, y, z = (tir.Var(name, "int32") for name in "i j k n m x y z".split())


def simplify(e, ranges=(), given=True):
    analyzer = arith.Analyzer()
    for var, low, extent in ranges:
        analyzer.bind(var, Range.from_min_extent(low, extent))
    if given is True:
        return analyzer.simplify(e)
    with analyzer.constraint_scope(given):
        return analyzer.simplify(e)


J4 = [(j, 0, 4)]
CASES = [
    # splits and fusions
    (fld(i * 4 + j, 4), i, J4),
    (flm(i * 4 + j, 4), j, J4),
    (fld(i, 4) * 4 + flm(i, 4), i, []),
    (fld(i, 8) * 8 + flm(fld(i, 4), 2) * 4 + flm(i, 4), i, []),
    (fld(i * 64 + j, 56) * 56 + flm(i * 8 + j, 56), i * 64 + j, []),
    ((k * 56 + fld(i * 64 + j, 56)) * 56 + flm(i * 8 + j, 56), k * 3136 + i * 64 + j, []),
    (fld(fld(i, 4), 2), fld(i, 8), []),
    (flm(flm(i, 8), 4), flm(i, 4), []),
    (fld(i * 12 + j, 12), i, [(j, 0, 12)]),
    (fld((i * 4 + j) * 8 + k, 32), i, [(j, 0, 4), (k, 0, 8)]),
    (flm((i * 4 + j) * 8 + k, 8), k, [(j, 0, 4), (k, 0, 8)]),
    (flm(fld(i * 32 + j * 8 + k, 8), 4), j, [(j, 0, 4), (k, 0, 8)]),
    (fld(i * 8 + j * 4, 8), i, [(j, 0, 2)]),
    (flm(i * 6, 3), tir.const(0), []),
    (fld(i + 16, 8), fld(i, 8) + 2, []),
    (flm(i + 16, 8), flm(i, 8), []),
    (fld(x * 8 + y * 4, 4), x * 2 + y, []),
    # sums
    (x + y - x, y, []),
    (x - (x - 1), tir.const(1), []),
    (x * 3 + x, x * 4, []),
    ((x + 1) * 2 - 2, x * 2, []),
    (x + 1 - 1, x, []),
    # bounds
    (tir.min(j, 10), j, J4),
    (tir.max(j, -1), j, J4),
    (tir.min(x, x + 3), x, []),
    (tir.max(x + 1, x), x + 1, []),
    (j < 4, tir.const(True), J4),
    (j >= 4, tir.const(False), J4),
    (tir.all(j >= 0, i < n), i < n, J4),
    (tir.Select(j < 4, x, y), x, J4),
    (x < x + 1, tir.const(True), []),
    (i * 4 + j < 16, i < 4, J4),
    (x + 1 <= y, x < y, []),
    (tir.Not(x < y), y <= x, []),
    (tir.all(x < 3, x < 5), x < 3, []),
    (tir.any(x < 3, x >= 3), tir.const(True), []),
    (tir.Select(x < y, x, y), tir.min(x, y), []),
]


@pytest.mark.parametrize("e,expected,ranges", CASES, ids=range(len(CASES)))
def test_simplify(e, expected, ranges):
    assert_structural_equal(simplify(e, ranges), expected)


def test_division_by_what_may_be_zero_stays():
    assert_structural_equal(simplify(fld(x, x)), fld(x, x))
    assert_structural_equal(simplify(fld(x * n, n), given=n > 0), x)
    assert_structural_equal(simplify(fld(x, x), given=x != 0), tir.const(1))
    kept = simplify(fld(x * n, n))
    assert evaluate(kept, {x: 5, n: 0}) == 0 and evaluate(kept, {x: 5, n: -3}) == 5


def test_symbolic_shapes():
    size = tir.SizeVar("size", "int32")
    analyzer = arith.Analyzer()
    analyzer.bind(i, Range.from_min_extent(0, n))
    analyzer.bind(j, Range.from_min_extent(0, m))
    assert analyzer.can_prove(i < n)
    assert analyzer.can_prove(i * 4 + 3 < n * 4)
    assert analyzer.can_prove(0 <= i)
    assert not analyzer.can_prove(i < n - 1)
    assert analyzer.can_prove(size >= 0)
    assert analyzer.can_prove(i + j < n + m)
    with analyzer.constraint_scope(m > 0):
        assert_structural_equal(analyzer.simplify(fld(i * m + j, m)), i)
        assert_structural_equal(analyzer.simplify(flm(i * m + j, m)), j)
        assert analyzer.can_prove(i * m + j < n * m, ProofStrength.SYMBOLIC_BOUND)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "uint64"])
def test_types_that_wrap_keep_what_overflow_would_change(dtype):
    a = tir.Var("a", dtype)
    four, one = tir.const(4, dtype), tir.const(1, dtype)
    for kept in (fld(a * four, four), a < a + one, tir.max(a + one, a)):
        assert_structural_equal(simplify(kept), kept)
    # Modular arithmetic is exact.
    assert_structural_equal(simplify(a + one - one), a)
    # Bounds prove that nothing overflows.
    analyzer = arith.Analyzer()
    analyzer.update(a, ConstIntBound(0, 10))
    assert_structural_equal(analyzer.simplify(fld(a * four, four)), a)
    assert analyzer.can_prove(a < a + one)


def test_data_of_an_index_type_wraps():
    buffer = tir.decl_buffer((16,), "int32")
    data = tir.BufferLoad(buffer, [i])
    kept = fld(data * 4, 4)
    assert_structural_equal(simplify(kept), kept)
    kept = data < data + 1
    assert_structural_equal(simplify(kept), kept)
    # Indices inside a load are index arithmetic.
    assert_structural_equal(
        simplify(tir.BufferLoad(buffer, [fld(i * 4 + j, 4)]), J4), tir.BufferLoad(buffer, [i])
    )
    analyzer = arith.Analyzer()
    analyzer.bind(x, data)
    assert not analyzer.can_prove(fld(x * 4, 4) == x)


def test_floating_point_is_left_as_written():
    a, b = tir.Var("a", "float32"), tir.Var("b", "float32")
    zero = tir.const(0.0, "float32")
    for kept in (
        a * zero,
        a + b - b,
        (a + b) + a,
        a - a,
        tir.min(tir.max(a, b), a),
        a == a,
        tir.Not(a < b),
    ):
        assert_structural_equal(simplify(kept), kept)
    index = tir.Select(x < x + 1, a, b)
    assert_structural_equal(simplify(index), a)


def test_calls_with_effects_are_neither_dropped_nor_merged():
    call = tir.call_extern("int32", "next")
    for kept in (call - call, call * 0, tir.min(call, call), call < call):
        assert_structural_equal(simplify(kept), kept)
    pure = tir.call_pure_extern("int32", "f", x)
    assert_structural_equal(simplify(pure - pure), tir.const(0))


def test_vectors():
    lanes = 4
    ramp = tir.Ramp(x, tir.const(1), lanes)
    splat = tir.Broadcast(y, lanes)
    assert_structural_equal(simplify(ramp + splat), tir.Ramp(x + y, tir.const(1), lanes))
    assert_structural_equal(simplify(splat * splat), tir.Broadcast(y * y, lanes))
    assert_structural_equal(simplify(ramp - ramp), tir.Broadcast(tir.const(0), lanes))
    wide = tir.Ramp(tir.Cast("int64", x), tir.const(1, "int64"), lanes)
    assert_structural_equal(simplify(tir.Cast("int64x4", ramp)), wide)
    assert_structural_equal(simplify(tir.Cast("int32x4", wide)), tir.Cast("int32x4", wide))
    eight = tir.Ramp(x * 8, tir.const(1), lanes)
    four = tir.Broadcast(tir.const(4), lanes)
    assert_structural_equal(simplify(tir.FloorDiv(eight, four)), tir.Broadcast(x * 2, lanes))
    assert_structural_equal(
        simplify(tir.FloorMod(eight, four)), tir.Ramp(tir.const(0), tir.const(1), lanes)
    )


def test_let():
    v = tir.Var("v", "int32")
    assert_structural_equal(simplify(tir.Let(v, tir.const(3), v + 1)), tir.const(4))
    e = tir.Let(v, flm(x, 4), fld(v, 4))
    assert_structural_equal(simplify(e), tir.const(0))


def test_casts():
    wide = tir.Cast("int64", tir.Cast("int32", tir.Cast("int64", x)))
    assert_structural_equal(simplify(wide), tir.Cast("int64", x))
    narrow = tir.Cast("int32", tir.Cast("int8", x))
    assert_structural_equal(simplify(narrow), narrow)
    assert_structural_equal(simplify(narrow, [(x, 0, 100)]), x)


def test_const_int_bound():
    analyzer = arith.Analyzer()
    analyzer.bind(x, Range.from_min_extent(-3, 10))

    def bound(e):
        b = analyzer.const_int_bound(e)
        return b.min_value, b.max_value

    assert bound(x) == (-3, 6)
    assert bound(x * -2 + 1) == (-11, 7)
    assert bound(fld(x, 2)) == (-2, 3)
    assert bound(flm(x, 4)) == (0, 3)
    assert bound(tir.truncmod(x, 4)) == (-3, 3)
    assert bound(tir.min(x, 2)) == (-3, 2)
    assert bound(y) == (-(2**31), 2**31 - 1)
    assert bound(tir.Var("w", "int64")) == (ConstIntBound.NEG_INF, ConstIntBound.POS_INF)
    assert bound(tir.Var("b", "uint8")) == (0, 255)
    assert bound(fld(10, x)) == (-10, 10)
    with analyzer.constraint_scope(tir.all(y >= 2, y < 7)):
        assert bound(y) == (2, 6)
        assert bound(y * x) == (-18, 36)
    assert bound(y) == (-(2**31), 2**31 - 1)
    assert analyzer.const_int_bound_is_bound(x) and not analyzer.const_int_bound_is_bound(y)


def test_modular_set():
    analyzer = arith.Analyzer()

    def cls(e):
        s = analyzer.modular_set(e)
        return s.coeff, s.base

    assert cls(x * 6 + y * 4 + 1) == (2, 1)
    assert cls(x * 6 * y) == (6, 0)
    assert cls(tir.Select(x < y, x * 4 + 2, y * 6)) == (2, 0)
    with analyzer.constraint_scope(flm(x, 4) == 2):
        assert cls(x + 1) == (4, 3)
        assert_structural_equal(analyzer.simplify(flm(x, 2)), tir.const(0))
    analyzer.update(y, arith.ModularSet(8, 0))
    assert_structural_equal(analyzer.simplify(flm(y, 4)), tir.const(0))
    assert cls(tir.const(5)) == (0, 5)


def test_constraints_hold_only_inside_their_scope():
    analyzer = arith.Analyzer()
    with analyzer.constraint_scope(tir.all(x < y, y < z)):
        assert analyzer.can_prove(x < y)
        assert analyzer.can_prove(x + 1 <= y)
        assert analyzer.can_prove(x + 1 < z)
        assert not analyzer.can_prove(y < x + 3)
        with analyzer.constraint_scope(x == 3):
            assert_structural_equal(analyzer.simplify(x + 1), tir.const(4))
        assert not analyzer.can_prove(x == 3)
    assert not analyzer.can_prove(x < y)
    with pytest.raises(RuntimeError), analyzer.constraint_scope(x < y):
        raise RuntimeError
    assert not analyzer.can_prove(x < y)


def test_can_prove_equal():
    analyzer = arith.Analyzer()
    assert analyzer.can_prove_equal(fld(x, 4) * 4 + flm(x, 4), x)
    assert analyzer.can_prove_equal((x + 1) * (y + 1), x * y + x + y + 1)
    assert not analyzer.can_prove_equal(x, y)


def test_extensions_and_statistics():
    analyzer = arith.Analyzer()
    assert analyzer.enabled_extensions == Extension.NoExtensions
    analyzer.enabled_extensions = Extension.TransitivelyProveInequalities
    assert analyzer.enabled_extensions == Extension.TransitivelyProveInequalities
    vs = [tir.Var(f"v{c}", "int32") for c in range(5)]
    with analyzer.constraint_scope(tir.all(*(a < b for a, b in zip(vs, vs[1:], strict=False)))):
        assert analyzer.can_prove(vs[0] + 3 < vs[4])
        assert not analyzer.can_prove(vs[0] + 4 < vs[4])
    assert analyzer.rewrite_simplify_stats["nodes_visited"] > 0
    analyzer.reset_rewrite_simplify_stats()
    assert set(analyzer.rewrite_simplify_stats.values()) == {0}


@pytest.mark.parametrize(
    "expr",
    [
        x * 8 + 8,
        x * 8 + 7 + 1 - 1,
        8 - x * 8,
        (y + 8) + x * 8,
        (y + x * 8) + 8,
        (y + 8) - x * 8,
        tir.min(x, 8) - x,
        tir.max(x, 8) - x,
    ],
)
def test_no_rule_undoes_what_another_did(expr):
    analyzer = arith.Analyzer()
    simple = analyzer.rewrite_simplify(expr)
    assert analyzer.rewrite_simplify_stats["max_recursive_depth"] < 8
    assert_structural_equal(analyzer.rewrite_simplify(simple), simple)


def test_what_looks_simple_may_not_be():
    analyzer = arith.Analyzer()
    assert_structural_equal(analyzer.simplify(x * 16 + y * 16), (x + y) * 16)
    assert_structural_equal(analyzer.simplify(x * 16 + x), x * 17)
    assert_structural_equal(analyzer.simplify(x * 16 + y), x * 16 + y)
    with analyzer.constraint_scope(x * 16 + y == 5):
        assert_structural_equal(analyzer.simplify(x * 16 + y), tir.const(5))
    analyzer.bind(y, tvm.ir.Range(0, 1))
    assert_structural_equal(analyzer.simplify(x * 16 + y), x * 16)
    with analyzer.constraint_scope(x == 3):
        assert_structural_equal(analyzer.simplify(x * 16 + z), z + 48)

    buffer = tir.decl_buffer((16,), "float32")
    v, one = tir.Var("v", "float32"), tir.const(1.0, "float32")
    load = tir.BufferLoad(buffer, [x])
    assert_structural_equal(analyzer.simplify(load * v), load * v)
    assert_structural_equal(analyzer.simplify(tir.Mul(load, one)), load)
    assert_structural_equal(
        analyzer.simplify(tir.BufferLoad(buffer, [x + y]) + v), tir.BufferLoad(buffer, [x]) + v
    )
    both = tir.Add(tir.Broadcast(v, 4), tir.Broadcast(load, 4))
    assert_structural_equal(analyzer.simplify(both), tir.Broadcast(v + load, 4))
    assert_structural_equal(analyzer.simplify(tir.Ramp(x + y, 0, 4)), tir.Broadcast(x, 4))
    analyzer.bind(v, one)
    assert_structural_equal(analyzer.simplify(load * v), load)


def test_shared_parts_and_deep_nesting_take_linear_time():
    e = x
    for _ in range(200):
        e = tir.Max(tir.FloorDiv(e, tir.const(3)), tir.FloorMod(e, tir.const(5)))
    simplify(e)
    deep = x
    for c in range(10_000):
        deep = tir.Add(deep, tir.const(c % 3))
    assert_structural_equal(simplify(deep), x + 9999)


def test_simplified_is_equal_everywhere():
    e = tir.Select(fld(x, 3) == flm(y, 4), tir.max(x - y, y * 2), tir.min(fld(x + y, 5), flm(x, 7)))
    s = simplify(e, [(x, -9, 20), (y, -7, 15)])
    for env in points({x: (-9, 20), y: (-7, 15)}):
        assert evaluate(e, env) == evaluate(s, env)


def test_errors():
    analyzer = arith.Analyzer()
    with pytest.raises(TypeError, match="can_prove: expected a bool, got int32"):
        analyzer.can_prove(x)
    with (
        pytest.raises(TypeError, match="constraint_scope: expected a bool, got int32"),
        analyzer.constraint_scope(x),
    ):
        pass
    analyzer.bind(x, tir.const(3))
    with pytest.raises(ValueError, match="got x again"):
        analyzer.bind(x, tir.const(4))
    analyzer.bind(x, tir.const(4), allow_override=True)
    assert_structural_equal(analyzer.simplify(x + 1), tir.const(5))
    with pytest.raises(ValueError, match="bind: expected a value without the variable itself"):
        analyzer.bind(z, z + 1)
    with pytest.raises(TypeError, match="update: expected a ConstIntBound or ModularSet"):
        analyzer.update(y, Range.from_min_extent(0, 4))
    with pytest.raises(NotImplementedError, match="PresburgerSet"):
        arith.PresburgerSet()
    assert tvm.arith.Analyzer is arith.Analyzer


def test_long_chains_take_time_in_proportion():
    def seconds(length):
        x = [tir.Var(f"x{i}", "int32") for i in range(8)]
        value = x[0]
        for i in range(length):
            value = tir.floordiv(value * (i % 7 + 2) + x[i % 8] * x[(i + 1) % 8], i % 5 + 2)
        taken = []
        for _ in range(3):  # the shortest: others have waited for the machine
            begin = time.process_time()
            arith.Analyzer().simplify(value)
            taken.append(time.process_time() - begin)
        return min(taken)

    assert seconds(8000) < 30 * seconds(1000)  # 8 in proportion, 64 where it grows by the square
