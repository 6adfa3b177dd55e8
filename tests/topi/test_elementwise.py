# SPDX-License-Identifier: Apache-2.0
"""Operators that work element by element."""

import math

import numpy as np
import pytest
import tvm
from tvm import te, topi

from .checking import blocks, check, compiled, values

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -7.25], "float32")
erf = np.vectorize(math.erf, otypes=["float64"])

UNARY = {
    "identity": lambda x: x,
    "negative": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "erf": erf,
    "tanh": np.tanh,
    "tan": np.tan,
    "cos": np.cos,
    "cosh": np.cosh,
    "sin": np.sin,
    "sinh": np.sinh,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.round,
    "isnan": np.isnan,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "square": np.square,
    "sign": np.sign,
    "fast_exp": np.exp,
    "fast_tanh": np.tanh,
    "fast_erf": erf,
}
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "floor_divide": lambda a, b: np.floor(a / b),
    "mod": np.fmod,
    "floor_mod": np.mod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": lambda a, b: np.power(np.abs(a), b),
    "log_add_exp": np.logaddexp,
    "greater": np.greater,
    "less": np.less,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater_equal": np.greater_equal,
    "less_equal": np.less_equal,
}
INTEGER = {
    "add": np.add,
    "multiply": np.multiply,
    "divide": lambda a, b: np.trunc(a / b).astype(a.dtype),
    "floor_divide": np.floor_divide,
    "mod": lambda a, b: np.fmod(a, b),
    "floor_mod": np.mod,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "maximum": np.maximum,
}
BOOLS = {
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    op, reference = getattr(topi, name), UNARY[name]
    for a in (values(5, 7), SPECIAL, values(0, 3), np.float32(0.3).reshape(())):
        check(op, [a], reference)
    check(op, [values(4, 9)], reference, symbolic=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    op, reference = getattr(topi, name), BINARY[name]
    if name == "power":
        op = lambda a, b: topi.power(topi.abs(a), b)
    shapes = [((4, 5), (4, 5)), ((4, 5), (5,)), ((4, 1, 3), (2, 1)), ((), (3,)), ((2, 0), (1, 0))]
    for left, right in shapes:
        check(op, [values(*left), values(*right, seed=1)], reference, rtol=1e-4)
    check(op, [values(4, 5), values(5, seed=1)], reference, symbolic=True, rtol=1e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("name", INTEGER)
def test_binary_of_integers(name, dtype):
    a = values(40, dtype=dtype, low=-100, high=100)
    b = values(40, dtype=dtype, low=1, high=9, seed=1) * np.where(np.arange(40) % 2, 1, -1)
    check(getattr(topi, name), [a, b.astype(dtype)], INTEGER[name])


@pytest.mark.parametrize("name", BOOLS)
def test_binary_of_bools(name):
    a, b = values(9, dtype="bool"), values(9, dtype="bool", seed=1)
    check(getattr(topi, name), [a, b], BOOLS[name])
    check(topi.logical_not, [a], np.logical_not)


def test_division_of_integers_by_zero_is_zero():
    a, b = np.array([5, -5, 0], "int32"), np.zeros(3, "int32")
    for op in (topi.divide, topi.floor_divide, topi.mod, topi.floor_mod):
        check(op, [a, b], np.zeros(3, "int32"))


def test_shifts():
    a, n = np.array([1, -8, 7], "int32"), np.array([3, 1, 2], "int32")
    check(topi.left_shift, [a, n], np.left_shift)
    check(topi.right_shift, [a, n], np.right_shift)
    check(lambda x: topi.left_shift(x, 2), [a], a << 2)
    check(topi.bitwise_not, [a], ~a)


def test_power_of_integers_is_exact():
    a, b = np.array([3, -2, 10, 7, 1], "int64"), np.array([13, 11, 15, 0, 60], "int64")
    check(topi.power, [a, b], a**b)


def test_scalars():
    a = values(3, 4)
    check(lambda x: topi.add(x, 2), [a], a + 2)
    check(lambda x: topi.subtract(1.5, x), [a], 1.5 - a)
    assert isinstance(topi.add(te.var("i"), 1), tvm.tir.PrimExpr)


def test_infinities_that_broadcast_to_logarithms():
    inf = np.float32(np.inf)
    a, b = np.array([-inf, inf, -inf, 1000], "float32"), np.array([-inf, inf, inf, 1000], "float32")
    check(topi.log_add_exp, [a, b], np.logaddexp)


def test_clip_where_cast():
    a = values(5, 6)
    check(lambda x: topi.clip(x, -1, 1), [a], np.clip(a, -1, 1))
    check(lambda x: topi.clip(x, -1, 1), [SPECIAL], np.clip(SPECIAL, -1, 1))
    c = values(5, 1, dtype="bool", seed=3)
    check(topi.where, [c, a, values(6, seed=2)], np.where)
    check(lambda x: topi.cast(x, "int32"), [a], a.astype("int32"))
    check(lambda x: topi.cast(x, "float64"), [a], a.astype("float64"))
    check(lambda x: topi.reinterpret(x, "int32"), [a], a.view("int32"))
    check(lambda x: topi.broadcast_to(x, (3, 5, 6)), [a], np.broadcast_to(a, (3, 5, 6)))


def test_sums_and_products():
    a, b, c = (values(4, 3, seed=s) for s in range(3))
    check(lambda *x: topi.elemwise_sum(x), [a, b, c], a + b + c)
    check(topi.ewise_fma, [a, b, c], a * b + c)
    n = np.array([1, 2, 3, 4, 5, 1023, 1024, 1025, 2**30 + 1], "int32")
    check(topi.ceil_log2, [n], np.ceil(np.log2(n)).astype("int32"))
    x = np.array([1000, -1000, 12345], "int32")
    expected = np.floor(x * (2**30 / 2**31) * 2**-1.0 + 0.5).astype("int32")
    check(lambda t: topi.fixed_point_multiply(t, 2**30, -1), [x], expected)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8"])
def test_types(dtype):
    a, b = values(17, dtype=dtype, low=0), values(17, dtype=dtype, low=0, seed=1)
    check(topi.add, [a, b], a + b, rtol=1e-3)
    check(topi.maximum, [a, b], np.maximum(a, b))


def test_blocks_and_tags():
    A, B = te.placeholder((4, 5), name="A"), te.placeholder((5,), name="B")
    result = topi.add(A, B)
    assert (result.op.name, result.op.tag) == ("T_add", "broadcast")
    assert topi.tag.is_broadcast(result.op.tag) and topi.tag.is_injective("injective,x")
    assert blocks(compiled(topi.exp, [values(3)]).func) == ["compute"]
    assert topi.broadcast.add is topi.add and topi.math.exp is topi.exp


def test_shapes_that_do_not_broadcast():
    A, B = te.placeholder((4, 5)), te.placeholder((3,))
    with pytest.raises(ValueError, match=r"add: expected shapes that broadcast, got \(4, 5\)"):
        topi.add(A, B)
    with pytest.raises(ValueError, match="broadcast_to: expected a shape that"):
        topi.broadcast_to(A, (5,))
    with pytest.raises(TypeError):
        topi.exp("x")
