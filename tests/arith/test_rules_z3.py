# SPDX-License-Identifier: Apache-2.0
"""Every rule of the rewrite simplifier, proved for all integers by z3 where that is installed."""

import pytest
import tvm.arith  # noqa: F401
import tvm_ffi

z3 = pytest.importorskip("z3")

ROWS = [[str(r[0]), int(r[1]), r[2], r[3], r[4]] for r in tvm_ffi.get_global_func("arith._rules")()]


def floordiv(a, b):
    # z3 rounds down for positive divisors.
    return z3.If(b == 0, 0, z3.If(b > 0, a / b, (-a) / (-b)))


def truncdiv(a, b):
    return z3.If(
        b == 0,
        0,
        z3.If((a < 0) == (b < 0), magnitude(a) / magnitude(b), -(magnitude(a) / magnitude(b))),
    )


def magnitude(a):
    return z3.If(a < 0, -a, a)


BINARY = {
    "tir.Add": lambda a, b: a + b,
    "tir.Sub": lambda a, b: a - b,
    "tir.Mul": lambda a, b: a * b,
    "tir.FloorDiv": floordiv,
    "tir.FloorMod": lambda a, b: z3.If(b == 0, 0, a - floordiv(a, b) * b),
    "tir.Div": truncdiv,
    "tir.Mod": lambda a, b: z3.If(b == 0, 0, a - truncdiv(a, b) * b),
    "tir.Min": lambda a, b: z3.If(a < b, a, b),
    "tir.Max": lambda a, b: z3.If(a < b, b, a),
    "tir.LT": lambda a, b: a < b,
    "tir.LE": lambda a, b: a <= b,
    "tir.GT": lambda a, b: a > b,
    "tir.GE": lambda a, b: a >= b,
    "tir.EQ": lambda a, b: a == b,
    "tir.NE": lambda a, b: a != b,
    "tir.And": z3.And,
    "tir.Or": z3.Or,
}


def convert(e):
    kind = e.__tvm_ffi_type_info__.type_key
    is_bool = str(e.dtype) == "bool"
    if kind == "tir.Var":
        return z3.Bool(e.name_hint) if is_bool else z3.Int(e.name_hint)
    if kind == "ir.IntImm":
        return z3.BoolVal(bool(e.value)) if is_bool else z3.IntVal(e.value)
    if kind == "tir.Not":
        return z3.Not(convert(e.a))
    if kind == "tir.Select":
        return z3.If(convert(e.condition), convert(e.true_value), convert(e.false_value))
    return BINARY[kind](convert(e.a), convert(e.b))


@pytest.mark.slow
def test_no_rule_has_a_counterexample():
    proved = 0
    for table, row, lhs, rhs, when in ROWS:
        solver = z3.Solver()
        solver.set("timeout", 200)
        solver.add(convert(when), convert(lhs) != convert(rhs))
        result = solver.check()
        assert result != z3.sat, f"{table} row {row}: {solver.model()}"
        proved += result == z3.unsat
    # Products and quotients of variables are beyond what z3 always decides.
    assert proved > len(ROWS) * 0.7
