# SPDX-License-Identifier: Apache-2.0
"""Operators: type matching, constant folding, errors."""

import itertools
import math

import numpy as np
import pytest
from tvm import ir, tir
from tvm.ir.expr import _op

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def _edges(dtype):
    info = np.iinfo(dtype)
    return sorted(
        {
            0,
            1,
            2,
            3,
            7,
            info.max,
            info.max - 1,
            info.min,
            info.min + 1,
            *([-1, -2, -7] if info.min else []),
        }
    )


def _imm(dtype, value):
    return ir.IntImm(
        dtype, int(np.array(value, dtype).astype("int64")) if dtype == "uint64" else int(value)
    )


def _value(imm, dtype):
    return np.array(imm.value, "int64").astype(dtype)


@pytest.mark.parametrize("dtype", INTS)
def test_integer_folding_agrees_with_numpy(dtype):
    functions = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "floordiv": np.floor_divide,
        "floormod": np.remainder, "truncmod": np.fmod, "min": np.minimum, "max": np.maximum,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        for a, b in itertools.product(_edges(dtype), repeat=2):
            x, y = np.array(a, dtype), np.array(b, dtype)
            for name, fn in functions.items():
                got = _value(getattr(_op, name)(_imm(dtype, a), _imm(dtype, b), None), dtype)
                assert got == fn(x, y), (name, a, b)
            for name, fn in {
                "less": np.less,
                "equal": np.equal,
                "greater_equal": np.greater_equal,
            }.items():
                assert bool(getattr(_op, name)(_imm(dtype, a), _imm(dtype, b), None).value) == fn(
                    x, y
                )


def test_truncating_division():
    for a, b in itertools.product([-7, -1, 0, 1, 7], [-3, -1, 0, 1, 3]):
        expected = 0 if b == 0 else int(a / b)
        assert tir.truncdiv(ir.IntImm("int32", a), ir.IntImm("int32", b)) == expected


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_float_folding_agrees_with_numpy(dtype):
    edges = [0.0, -0.0, 1.0, -1.5, 3.25, float("inf"), -float("inf"), float("nan"), 6e4, 1e-7]
    functions = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
        "min": np.minimum, "max": np.maximum,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        for a, b in itertools.product(edges, repeat=2):
            x, y = np.array(a, dtype), np.array(b, dtype)
            for name, fn in functions.items():
                got = getattr(_op, name)(
                    ir.FloatImm(dtype, float(x)), ir.FloatImm(dtype, float(y)), None
                )
                np.testing.assert_array_equal(
                    np.array(got.value, dtype), fn(x, y), err_msg=f"{name} {a} {b}"
                )


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        ("int32", "float32", "float32"),
        ("int32", "int64", "int64"),
        ("uint8", "int8", "uint8"),
        ("float16", "bfloat16", "float32"),
        ("float16", "float64", "float64"),
        ("bool", "int32", "int32"),
        ("int8", "float16", "float16"),
        ("int32", "uint64", "uint64"),
    ],
)
def test_type_matching(a, b, common):
    x, y = tir.Var("x", a), tir.Var("y", b)
    assert (x + y).dtype == common == (y + x).dtype


def test_scalars_broadcast_to_vectors():
    v = tir.Ramp(0, 1, 4)
    assert (v + 1).dtype == "int32x4"
    with pytest.raises(TypeError, match="common type"):
        v + tir.Ramp(0, 1, 8)


def test_handles_have_no_arithmetic():
    with pytest.raises(TypeError, match="add: expected numbers, got handle"):
        tir.Var("p", "handle") + 1


def test_division_of_integers_must_say_how_it_rounds():
    x = tir.Var("x", "int32")
    with pytest.raises(RuntimeError, match="truncdiv"):
        x / 2
    assert (x / 2.0).dtype == "float32"


def test_a_symbolic_value_is_no_bool():
    x = tir.Var("x", "int32")
    with pytest.raises(ValueError, match="if_then_else"):
        bool(x < 1)
    assert (x == x) and not (x != x)
    assert {x: 1}[x] == 1
    assert isinstance(tir.all(x == 1, x != 2), tir.And)


def test_casts_saturate_and_wrap():
    assert ir.FloatImm("float32", 300.0).astype("int8").value == 127
    assert ir.FloatImm("float32", -5.0).astype("uint8").value == 0
    assert ir.FloatImm("float32", math.nan).astype("int32").value == 0
    assert ir.IntImm("int32", 300).astype("int8").value == 44
    assert ir.IntImm("int64", 16777217).astype("float32").value == 16777216.0


def test_shifts_by_the_width_or_more():
    one = ir.IntImm("int32", -8)
    assert (one << ir.IntImm("int32", 32)).value == 0
    assert (one >> ir.IntImm("int32", 40)).value == -1
    assert (ir.IntImm("uint8", 200) >> ir.IntImm("uint8", 8)).value == 0


def test_limits():
    assert tir.max_value("int8").value == 127 and tir.min_value("int8").value == -128
    assert tir.max_value("float16").value == 65504.0
    assert tir.infinity("float32").value == math.inf
    with pytest.raises(TypeError, match="with an infinity"):
        tir.infinity("float8_e4m3fn")


def test_neutral_elements():
    x, f = tir.Var("x", "int32"), tir.Var("f", "float32")
    assert (x + 0).same_as(x) and (1 * x).same_as(x) and (x * 0) == 0
    assert isinstance(f * 0.0, tir.Mul)  # f may be NaN
    assert isinstance(f + 0.0, tir.Add)  # f may be -0
    assert isinstance(x // x, tir.FloorDiv)  # x may be 0


def test_math_functions_take_floats():
    assert tir.exp(tir.Var("x", "float16")).dtype == "float16"
    assert tir.exp(tir.Var("x", "int32")).dtype == "float32"
    assert tir.floor(tir.Var("x", "int32")).dtype == "int32"
    with pytest.raises(TypeError, match="exp: expected numbers, got handle"):
        tir.exp(tir.Var("p", "handle"))
    with pytest.raises(TypeError, match="tir.exp: parameter 'x': expected ir.PrimExpr, got"):
        tir.exp(np.zeros(3, "float32"))
    with pytest.raises(TypeError):
        tir.exp()


def test_reducers():
    k = tir.IterVar((0, 8), "k", tir.IterVar.CommReduce)
    A = tir.decl_buffer((8,))
    total = tir.sum(A[k.var], axis=k)
    assert isinstance(total, tir.Reduce) and total.dtype == "float32"
    assert isinstance(tir.max(tir.Var("a", "int32"), 3), tir.Max)
    argmax = tir.comm_reducer(
        lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (tir.const(-1, t0), tir.min_value(t1)),
    )
    index, value = argmax((k.var, A[k.var]), axis=k)
    assert index.dtype == "int32" and value.value_index == 1
    with pytest.raises(TypeError, match="reduce_axis"):
        tir.sum(A[0], axis=[3])


_WRITTEN = {*vars(tir.op), "reinterpret"}  # with a function of their own
INTRINSICS = sorted({n[4:] for n in tir.op._names() if tir.op._signature(n[4:])} - _WRITTEN)


@pytest.mark.parametrize("name", INTRINSICS)
def test_every_intrinsic_builds_a_call(name):
    import inspect

    fn = getattr(tir, name)
    args = []
    for p in inspect.signature(fn).parameters.values():
        if p.name == "span" or p.default is not p.empty:
            continue
        args.append("float32x4" if p.name == "dtype" else tir.const(1, "int32"))
    call = fn(*args)
    assert isinstance(call, tir.Call) and call.op.name == "tir." + name
