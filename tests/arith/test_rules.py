# SPDX-License-Identifier: Apache-2.0
"""Every rule of the rewrite simplifier, evaluated on all small integers by NumPy."""

import itertools

import numpy as np
import pytest
import tvm.arith  # noqa: F401
import tvm_ffi

ROWS = [
    [str(r[0]), int(r[1]), r[2], r[3], r[4], str(r[5])]
    for r in tvm_ffi.get_global_func("arith._rules")()
]
IDS = [f"{table}-{row}" for table, row, *_ in ROWS]


def divide(a, b, floor):
    q = np.floor_divide(a, np.where(b == 0, 1, b))
    if not floor:
        q = np.where((a % np.where(b == 0, 1, b) != 0) & ((a < 0) != (b < 0)), q + 1, q)
    return np.where(b == 0, 0, q)


BINARY = {
    "tir.Add": lambda a, b: a + b,
    "tir.Sub": lambda a, b: a - b,
    "tir.Mul": lambda a, b: a * b,
    "tir.FloorDiv": lambda a, b: divide(a, b, True),
    "tir.FloorMod": lambda a, b: np.where(b == 0, 0, a - divide(a, b, True) * b),
    "tir.Div": lambda a, b: divide(a, b, False),
    "tir.Mod": lambda a, b: np.where(b == 0, 0, a - divide(a, b, False) * b),
    "tir.Min": np.minimum,
    "tir.Max": np.maximum,
    "tir.LT": lambda a, b: a < b,
    "tir.LE": lambda a, b: a <= b,
    "tir.GT": lambda a, b: a > b,
    "tir.GE": lambda a, b: a >= b,
    "tir.EQ": lambda a, b: a == b,
    "tir.NE": lambda a, b: a != b,
    "tir.And": np.logical_and,
    "tir.Or": np.logical_or,
}
EXACT = lambda v: v


def key(e):
    return e.__tvm_ffi_type_info__.type_key


def children(e):
    if key(e) in BINARY:
        return [e.a, e.b]
    if key(e) == "tir.Not":
        return [e.a]
    if key(e) == "tir.Select":
        return [e.condition, e.true_value, e.false_value]
    return []


def is_constant(e):
    """What the simplifier computes when it uses the rule."""
    kids = children(e)
    if key(e) == "tir.Var":
        return e.name_hint.startswith("c")
    return key(e) == "ir.IntImm" or (bool(kids) and all(map(is_constant, kids)))


def evaluate(e, env, wrap, fits=None):
    """`wrap` brings results into the type; constant parts are computed exactly, and `fits` collects
    where they are numbers of the type."""
    if key(e) == "tir.Var":
        return env[e.name_hint]
    if key(e) == "ir.IntImm" and str(e.dtype) == "bool":
        return np.bool_(e.value)
    if is_constant(e) and str(e.dtype) != "bool":
        value = exact_constant(e, env)
        if fits is not None:
            fits.append(wrap(value) == value)
        return wrap(value)
    kids = [evaluate(k, env, wrap, fits) for k in children(e)]
    if key(e) == "tir.Not":
        return np.logical_not(kids[0])
    if key(e) == "tir.Select":
        return np.where(*kids)
    result = BINARY[key(e)](*kids)
    return wrap(result) if result.dtype != np.bool_ else result


def exact_constant(e, env):
    if key(e) == "tir.Var":
        return env[e.name_hint]
    if key(e) == "ir.IntImm":
        return np.int64(e.value)
    return BINARY[key(e)](*[exact_constant(k, env) for k in children(e)])


def wildcards(*exprs):
    names = {}

    def visit(e):
        if key(e) == "tir.Var":
            names[e.name_hint] = e
        for k in children(e):
            visit(k)

    for e in exprs:
        visit(e)
    return sorted(names)


def grids(names, numbers, points):
    """All combinations; a random part of them where they are too many."""
    values = [np.array([False, True]) if n in "pqr" else np.array(numbers, np.int64) for n in names]
    total = int(np.prod([len(v) for v in values]))
    if total <= points:
        return dict(zip(names, np.meshgrid(*values, indexing="ij"), strict=True)) if names else {}
    rng = np.random.default_rng(7)
    return {n: rng.choice(v, points) for n, v in zip(names, values, strict=True)}


def check(row, numbers, wrap, needs_fit):
    table, number, lhs, rhs, when, needs = row
    env = grids(wildcards(lhs, rhs, when), numbers, 2_000_000)
    fits = []
    left, right = (
        evaluate(lhs, env, wrap, fits),
        evaluate(rhs, env, wrap, fits if needs_fit else None),
    )
    mask = np.logical_and(
        evaluate(when, env, EXACT), np.ones(np.broadcast(left, right).shape, bool)
    )
    if needs_fit:
        for f in fits:
            mask = mask & f
    bad = mask & (left != right)
    if np.any(bad):
        where = tuple(i[0] for i in np.nonzero(bad))
        point = {n: v[where].item() for n, v in env.items()}
        pytest.fail(f"{table} row {number}: {lhs} -> {rhs} when {when}: wrong for {point}")
    return int(mask.sum())


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_rule_holds_for_integers(row):
    assert check(row, range(-8, 9), EXACT, False) > 0, "no example satisfies the condition"


INT8 = [-128, -127, -86, -64, -3, -2, -1, 0, 1, 2, 3, 5, 64, 85, 126, 127]
UINT8 = [0, 1, 2, 3, 4, 5, 7, 64, 85, 127, 128, 129, 170, 254, 255]


@pytest.mark.parametrize(
    "row",
    [r for r in ROWS if r[5] != "index"],
    ids=[i for i, r in zip(IDS, ROWS, strict=True) if r[5] != "index"],
)
@pytest.mark.parametrize(
    "dtype,numbers", [(np.int8, INT8), (np.uint8, UINT8)], ids=["int8", "uint8"]
)
def test_rule_without_contract_holds_for_wrapping_types(row, dtype, numbers):
    wrap = lambda v: np.asarray(v).astype(dtype).astype(np.int64)
    check(row, numbers, wrap, row[5] == "fits")


def test_all_tables_are_listed():
    tables = [t for t, _ in itertools.groupby(r[0] for r in ROWS)]
    assert len(tables) == len(set(tables)) >= 15
    assert len(ROWS) > 350
