# SPDX-License-Identifier: Apache-2.0
"""Every operator on every type, at the edges of their ranges, against NumPy: scalars and vectors,
with and without the newer instructions."""

import numpy as np
import pytest
from kernels import buffer, build, call, const, loop, module, run
from tvm import tir

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def edge_values(dtype):
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTS:
        info = np.iinfo(dtype)
        near = [
            info.min,
            info.min + 1,
            info.max,
            info.max - 1,
            info.max // 2,
            0,
            1,
            2,
            3,
            5,
            7,
            8,
            31,
            64,
            100,
        ]
        if info.min < 0:
            near += [-1, -2, -3, -7, -8, -100]
        return np.array(near, dtype)
    info = np.finfo(dtype)
    values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        3.7,
        -3.7,
        100.25,
        255.0,
        256.0,
        -129.0,
    ]
    values += [np.nan, np.inf, -np.inf, float(info.max), float(info.min), float(info.tiny)]
    values += [
        float(info.smallest_subnormal),
        32768.0,
        -32769.0,
        65504.0,
        2.0**31,
        -(2.0**31),
        2.0**32,
    ]
    values += [2.0**63, -(2.0**63), 2.0**64, 1e-5, 7.0, -7.0]
    with np.errstate(over="ignore"):
        return np.array(values, dtype)


def pairs(dtype, other=None):
    """All pairs of edge values, as many as vectors need."""
    a, b = np.meshgrid(edge_values(dtype), edge_values(other or dtype))
    a, b = a.ravel(), b.ravel()
    pad = -len(a) % 16
    return np.concatenate([a, a[:pad]]), np.concatenate([b, b[:pad]])


def compute(outputs, in_types, n, lanes, target=None):
    """Runs `outputs` {name: (dtype, fn(a, b))} lane-wise over two inputs; gives what each gave."""
    ins = [buffer(name, t, n) for name, t in zip("AB", in_types, strict=False)]
    outs = [buffer(name, t, n) for name, (t, _) in outputs.items()]
    i = tir.Var("i", "int32")
    index = i if lanes == 1 else tir.Ramp(i * lanes, const(1), lanes)
    args = [tir.BufferLoad(b, [index]) for b in ins]
    stores = [
        tir.BufferStore(o, fn(*args), [index])
        for o, (_, fn) in zip(outs, outputs.values(), strict=False)
    ]
    body = loop(i, const(n // lanes), tir.SeqStmt(stores) if len(stores) > 1 else stores[0])
    built = build(module(body, ins + outs), target)

    def go(a, b):
        results = {name: np.zeros(n, t) for name, (t, _) in outputs.items()}
        run(built, a, b, *results.values())
        return results

    return go


def lanes_of(dtype, value):
    return dtype if value.dtype.find("x") < 0 else f"{dtype}x{value.dtype.split('x')[1]}"


def binary(node):
    return lambda a, b: node(a, b)


def op2(name):
    return lambda a, b: call(a.dtype, name, a, b)


def op1(name):
    return lambda a, b: call(a.dtype, name, a)


def wrap(values, dtype):
    """Integers of any size as two's complement of a type."""
    bits = np.iinfo(dtype).bits
    unsigned = [v % (1 << bits) for v in values]
    return np.array(unsigned, dtype=f"uint{bits}").view(dtype)


def exactly(fn):
    """fn on Python's integers, 0 where it divides by zero."""

    def reference(a, b):
        result = []
        for x, y in zip(a.tolist(), b.tolist(), strict=False):
            try:
                result.append(int(fn(x, y)))
            except ZeroDivisionError:
                result.append(0)
        return wrap(result, a.dtype)

    return reference


def trunc_div(x, y):
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def shift_left(bits):
    return lambda x, y: x << y if 0 <= y < bits else 0


def shift_right(bits):
    return lambda x, y: x >> (y if 0 <= y < bits else bits - 1 if x < 0 else bits)


def int_ops(dtype):
    bits = np.iinfo(dtype).bits
    return {
        "add": (binary(tir.Add), exactly(lambda x, y: x + y)),
        "sub": (binary(tir.Sub), exactly(lambda x, y: x - y)),
        "mul": (binary(tir.Mul), exactly(lambda x, y: x * y)),
        "div": (binary(tir.Div), exactly(trunc_div)),
        "mod": (binary(tir.Mod), exactly(lambda x, y: x - trunc_div(x, y) * y)),
        "floordiv": (binary(tir.FloorDiv), exactly(lambda x, y: x // y)),
        "floormod": (binary(tir.FloorMod), exactly(lambda x, y: x % y)),
        "min": (binary(tir.Min), exactly(min)),
        "max": (binary(tir.Max), exactly(max)),
        "and": (op2("bitwise_and"), exactly(lambda x, y: x & y)),
        "or": (op2("bitwise_or"), exactly(lambda x, y: x | y)),
        "xor": (op2("bitwise_xor"), exactly(lambda x, y: x ^ y)),
        "not": (op1("bitwise_not"), exactly(lambda x, y: ~x)),
        "shl": (op2("shift_left"), exactly(shift_left(bits))),
        "shr": (op2("shift_right"), exactly(shift_right(bits))),
        "popcount": (op1("popcount"), exactly(lambda x, y: bin(x % (1 << bits)).count("1"))),
        "clz": (op1("clz"), exactly(lambda x, y: bits - (x % (1 << bits)).bit_length())),
    }


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", INTS)
def test_integers(dtype, lanes, target):
    a, b = pairs(dtype)
    ops = int_ops(dtype)
    go = compute(
        {k: (dtype, fn) for k, (fn, _) in ops.items()}, [dtype, dtype], len(a), lanes, target
    )
    for name, got in go(a, b).items():
        np.testing.assert_array_equal(got, ops[name][1](a, b), name)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "int8"])
def test_integers_constant_divisor(dtype, lanes):
    a, _ = pairs(dtype)
    divisors = [0, 1, 2, 3, 7, 16] + ([-1, -2, -5] if dtype[0] == "i" else [])
    nodes = {"div": tir.Div, "mod": tir.Mod, "fdiv": tir.FloorDiv, "fmod": tir.FloorMod}
    ops = {}
    for d in divisors:
        for name, node in nodes.items():

            def fn(x, _, node=node, d=d):
                c = const(d, dtype)
                return node(x, c if lanes == 1 else tir.Broadcast(c, lanes))

            ops[f"{name}_{d % 1000}"] = (dtype, fn)
    results = compute(ops, [dtype, dtype], len(a), lanes)(a, a)
    reference = int_ops(dtype)
    full = {"div": "div", "mod": "mod", "fdiv": "floordiv", "fmod": "floormod"}
    for d in divisors:
        for name in nodes:
            expected = reference[full[name]][1](a, np.full_like(a, d))
            np.testing.assert_array_equal(results[f"{name}_{d % 1000}"], expected, f"{name} {d}")


def floor_div(a, b):
    return np.floor(a / b)


FLOAT_OPS = {
    "add": (binary(tir.Add), np.add),
    "sub": (binary(tir.Sub), np.subtract),
    "mul": (binary(tir.Mul), np.multiply),
    "div": (binary(tir.Div), np.divide),
    "min": (binary(tir.Min), np.minimum),
    "max": (binary(tir.Max), np.maximum),
    "floordiv": (binary(tir.FloorDiv), floor_div),
    "copysign": (op2("copysign"), np.copysign),
    "floor": (op1("floor"), lambda a, b: np.floor(a)),
    "ceil": (op1("ceil"), lambda a, b: np.ceil(a)),
    "trunc": (op1("trunc"), lambda a, b: np.trunc(a)),
    "round": (op1("round"), lambda a, b: np.rint(a)),
    "nearbyint": (op1("nearbyint"), lambda a, b: np.rint(a)),
    "sqrt": (op1("sqrt"), lambda a, b: np.sqrt(a)),
    "fabs": (op1("fabs"), lambda a, b: np.fabs(a)),
}


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype, lanes, target):
    a, b = pairs(dtype)
    go = compute(
        {k: (dtype, fn) for k, (fn, _) in FLOAT_OPS.items()}, [dtype, dtype], len(a), lanes, target
    )
    with np.errstate(all="ignore"):
        for name, got in go(a, b).items():
            np.testing.assert_array_equal(got, FLOAT_OPS[name][1](a, b), name)
            if name in ("copysign", "sqrt", "mul", "round", "trunc"):
                np.testing.assert_array_equal(
                    np.signbit(got[~np.isnan(got)]),
                    np.signbit(FLOAT_OPS[name][1](a, b)[~np.isnan(got)]),
                    name,
                )


def remainder_pairs(dtype):
    """Edge values, numbers of all sizes, and those next to multiples of the divisor."""
    rng = np.random.default_rng(0)
    a, b = pairs(dtype)
    x, y = rng.standard_normal((2, 4000)) * 2.0 ** rng.integers(-20, 20, (2, 4000))
    near = np.trunc(rng.standard_normal(4000) * 2.0 ** rng.integers(0, 26, 4000)).astype(dtype)
    multiples = near * y.astype(dtype)
    beside = [np.nextafter(multiples, dtype(side)) for side in (-np.inf, np.inf)]
    a = np.concatenate([a, x, multiples, *beside], dtype=dtype)
    b = np.concatenate([b, y, y, y, y], dtype=dtype)
    return a, b


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_remainders(dtype, lanes):
    a, b = remainder_pairs(np.dtype(dtype).type)
    ops = {"mod": (dtype, binary(tir.Mod)), "floormod": (dtype, binary(tir.FloorMod))}
    got = compute(ops, [dtype, dtype], len(a), lanes)(a, b)
    with np.errstate(all="ignore"):
        for name, expected in (("mod", np.fmod(a, b)), ("floormod", np.mod(a, b))):
            np.testing.assert_array_equal(got[name], expected)
            numbers = ~np.isnan(expected)
            np.testing.assert_array_equal(
                np.signbit(got[name][numbers]), np.signbit(expected[numbers])
            )


@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_min_max_of_zeros_keeps_the_first(lanes):
    a = np.array([0.0, -0.0] * 8, "float32")
    b = np.array([-0.0, 0.0] * 8, "float32")
    ops = {"min": ("float32", binary(tir.Min)), "max": ("float32", binary(tir.Max))}
    for got in compute(ops, ["float32"] * 2, 16, lanes)(a, b).values():
        np.testing.assert_array_equal(np.signbit(got), np.signbit(a))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", INTS + FLOATS)
def test_comparisons(dtype, lanes, target):
    a, b = pairs(dtype)
    nodes = {
        "EQ": np.equal,
        "NE": np.not_equal,
        "LT": np.less,
        "LE": np.less_equal,
        "GT": np.greater,
        "GE": np.greater_equal,
    }
    ops = {name: ("bool", binary(getattr(tir, name))) for name in nodes}
    ops["select"] = (dtype, lambda x, y: tir.Select(tir.LT(x, y), y, x))
    got = compute(ops, [dtype, dtype], len(a), lanes, target)(a, b)
    for name, reference in nodes.items():
        np.testing.assert_array_equal(got[name], reference(a, b), name)
    np.testing.assert_array_equal(got["select"], np.where(a < b, b, a))


def cast_reference(a, to):
    if to == "bool":
        return a != 0
    if a.dtype.kind == "f" and to in INTS:
        info = np.iinfo(to)
        clipped = [
            0
            if np.isnan(x)
            else info.max
            if x >= info.max
            else info.min
            if x <= info.min
            else int(x)
            for x in a.tolist()
        ]
        return np.array(clipped, to)
    with np.errstate(all="ignore"):
        return a.astype(to)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", INTS + FLOATS + ["bool"])
def test_casts(dtype, lanes, target):
    a, _ = pairs(dtype)
    a = a[: len(a) // 16 * 16][:64] if len(a) > 64 else np.resize(a, 64)
    types = INTS + FLOATS + ["bool"]
    suffix = "" if lanes == 1 else f"x{lanes}"
    ops = {"to_" + t: (t, lambda x, _, t=t: tir.Cast(t + suffix, x)) for t in types}
    got = compute(ops, [dtype, dtype], len(a), lanes, target)(a, a)
    for t in types:
        np.testing.assert_array_equal(got["to_" + t], cast_reference(a, t), f"{dtype} to {t}")


def test_float16_conversions_of_all_numbers(target):
    """Every float16, and float64 beside and between them, with and without instructions for it."""
    with np.errstate(all="ignore"):
        halves = np.arange(65536, dtype="uint16").view("float16")
        wide = halves.astype("float64")
        a = np.concatenate(
            [wide, np.nextafter(wide, np.inf), np.nextafter(wide, -np.inf), wide * (1 + 2.0**-11)]
        )
        narrow = a.astype("float32")
    ops = {
        "half": ("float16", lambda x, y: tir.Cast("float16", x)),
        "single": ("float16", lambda x, y: tir.Cast("float16", y)),
    }
    got = compute(ops, ["float64", "float32"], len(a), 1, target)(a, narrow)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got["half"], a.astype("float16"))
        np.testing.assert_array_equal(got["single"], narrow.astype("float16"))
    back = compute(
        {"b": ("float32", lambda x, y: tir.Cast("float32", x))},
        ["float16"] * 2,
        65536,
        1,
        target,
    )
    np.testing.assert_array_equal(back(halves, halves)["b"], halves.astype("float32"))


def test_fused_multiply_add_rounds_once():
    a = np.array([1 + 2.0**-12] * 16, "float32")
    b = np.full(16, -(1 + 2.0**-11), "float32")
    fma = {"r": ("float32", lambda x, y: call("float32", "fma", x, x, y))}
    got = compute(fma, ["float32"] * 2, 16, 1)(a, b)["r"]
    np.testing.assert_array_equal(got, np.full(16, 2.0**-24, "float32"))


@pytest.mark.parametrize("lanes", [1, 8])
def test_reinterpret(lanes):
    suffix = "" if lanes == 1 else f"x{lanes}"
    a = np.resize(edge_values("float32"), 64)
    ops = {"bits": ("int32", lambda x, y: call("int32" + suffix, "reinterpret", x))}
    got = compute(ops, ["float32"] * 2, 64, lanes)(a, a)["bits"]
    np.testing.assert_array_equal(got, a.view("int32"))


def test_isnan():
    a = np.resize(edge_values("float32"), 64)
    got = compute({"nan": ("bool", lambda x, y: call("bool", "isnan", x))}, ["float32"] * 2, 64, 1)(
        a, a
    )
    np.testing.assert_array_equal(got["nan"], np.isnan(a))


@pytest.mark.parametrize("lanes", [1, 8])
def test_logic(lanes):
    a, b = pairs("bool")
    ops = {
        "both": ("bool", binary(tir.And)),
        "either": ("bool", binary(tir.Or)),
        "neither": ("bool", lambda x, y: tir.Not(tir.Or(x, y))),
    }
    got = compute(ops, ["bool", "bool"], len(a), lanes)(a, b)
    np.testing.assert_array_equal(got["both"], a & b)
    np.testing.assert_array_equal(got["either"], a | b)
    np.testing.assert_array_equal(got["neither"], ~(a | b))
