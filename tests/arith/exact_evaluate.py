# SPDX-License-Identifier: Apache-2.0
"""Exact evaluation of integer expressions in Python, for tests that enumerate a domain."""

import itertools


def _floordiv(a, b):
    return 0 if b == 0 else a // b


def _truncdiv(a, b):
    return 0 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


BINARY = {
    "tir.Add": lambda a, b: a + b,
    "tir.Sub": lambda a, b: a - b,
    "tir.Mul": lambda a, b: a * b,
    "tir.FloorDiv": _floordiv,
    "tir.FloorMod": lambda a, b: 0 if b == 0 else a % b,
    "tir.Div": _truncdiv,
    "tir.Mod": lambda a, b: 0 if b == 0 else a - _truncdiv(a, b) * b,
    "tir.Min": min,
    "tir.Max": max,
    "tir.LT": lambda a, b: a < b,
    "tir.LE": lambda a, b: a <= b,
    "tir.GT": lambda a, b: a > b,
    "tir.GE": lambda a, b: a >= b,
    "tir.EQ": lambda a, b: a == b,
    "tir.NE": lambda a, b: a != b,
    "tir.And": lambda a, b: a and b,
    "tir.Or": lambda a, b: a or b,
}


def key(e):
    return e.__tvm_ffi_type_info__.type_key


def evaluate(e, env):
    """`env`: values by variable."""
    if isinstance(e, (bool, int)):
        return e
    if hasattr(e, "asobject"):  # x == y, which may also be a Python bool
        e = e.asobject()
    kind = key(e)
    if kind in BINARY:
        return BINARY[kind](evaluate(e.a, env), evaluate(e.b, env))
    if kind == "ir.IntImm":
        return e.value
    if kind in ("tir.Var", "tir.SizeVar"):
        return next(value for var, value in env.items() if var.same_as(e))
    if kind == "tir.Not":
        return not evaluate(e.a, env)
    if kind == "tir.Select":
        return evaluate(e.true_value if evaluate(e.condition, env) else e.false_value, env)
    if kind == "tir.Cast":
        return evaluate(e.value, env)
    if kind == "tir.Call" and e.op.name == "tir.if_then_else":
        cond, yes, no = e.args
        return evaluate(yes if evaluate(cond, env) else no, env)
    raise NotImplementedError(kind)


def points(domains, predicate=True):
    """All environments with each variable in its (min, extent), where the predicate holds."""
    names = list(domains)
    for values in itertools.product(*(range(m, m + n) for m, n in domains.values())):
        env = dict(zip(names, values, strict=True))
        if evaluate(predicate, env):
            yield env
