# SPDX-License-Identifier: Apache-2.0
"""Numbers of the interpreter: Python integers and doubles, brought to their type by each operation.

An integer is a Python int inside the range of its type, bool is 0 or 1, a floating-point number a
float whose value the type can hold. One operation in double and one rounding gives the correctly
rounded result for float32 and below (a double has more than twice the digits); where that does not
hold, the operation is exact (Fraction) and rounds once.
"""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import tvm_ffi

_BOOL, _INT, _UINT, _FLOAT, _HANDLE = "bool", "int", "uint", "float", "handle"


class Type:
    """What the interpreter asks of a data type."""

    def __init__(self, dtype):
        name = str(dtype)
        dtype = tvm_ffi.dtype(name)
        self.lanes, self.bits = dtype.lanes, dtype.bits
        self.name = name if self.lanes == 1 else name[: name.rindex("x")]
        self.kind = next(
            (k for k in (_BOOL, _UINT, _INT, _HANDLE) if self.name.startswith(k)), _FLOAT
        )
        self.is_float = self.kind == _FLOAT
        self.is_int = self.kind in (_INT, _UINT)
        self.is_handle = self.kind == _HANDLE
        if not self.is_handle:
            self.numpy = self._element()
        self.bytes = 8 if self.is_handle else self.numpy.itemsize
        if self.kind == _INT:
            self.low, self.high = -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        elif self.kind in (_UINT, _BOOL):
            self.low, self.high = 0, (1 << self.bits) - 1

    def _element(self):
        """What arrays hold it in; an integer that NumPy does not know, in the next wider one."""
        name = self.name
        if self.is_int and not hasattr(np, name) and not hasattr(ml_dtypes, name):
            name = f"{self.kind}{max(8, 1 << (self.bits - 1).bit_length())}"
        return np.dtype(getattr(ml_dtypes, name, None) or name)

    def bring(self, value):
        """`value` (an int, a float or a Fraction) in this type: integers wrap, floats round."""
        if self.kind == _BOOL:
            return int(value != 0)
        if self.is_int:
            return _saturate(value, self) if isinstance(value, float) else self.wrap(value)
        if isinstance(value, (int, Fraction)):
            value = _to_double(Fraction(value), exact=self.bits == 64)
        return self.round(value)

    def wrap(self, value):
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.kind == _INT and value > self.high else value

    def round(self, value):
        with np.errstate(all="ignore"):
            if self.bits == 64:
                return float(value)
            # Types below float32 compute in float32.
            result = float(np.float32(value).astype(self.numpy))
            if math.isnan(value) and not math.isnan(result):  # the type has none: its largest
                return float(ml_dtypes.finfo(self.numpy).max)
            return result


_TYPES = {}


def type_of(dtype):
    key = str(dtype)
    if key not in _TYPES:
        _TYPES[key] = Type(key)
    return _TYPES[key]


def _saturate(value, t):
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return t.high if value > 0 else t.low
    return min(max(math.trunc(value), t.low), t.high)


def _to_double(exact_value, exact):
    """The nearest double or, when it will be rounded again, the one that does not change the second
    rounding: of the two neighbours the one with an odd last digit."""
    try:
        nearest = float(exact_value)
    except OverflowError:
        return math.inf if exact_value > 0 else -math.inf
    if exact or Fraction(nearest) == exact_value:
        return nearest
    if np.float64(nearest).view(np.uint64) % 2:
        return nearest
    return math.nextafter(nearest, math.inf if exact_value > nearest else -math.inf)


def _divide(a, b, t):
    if t.is_float:
        with np.errstate(all="ignore"):
            return float(np.float64(a) / np.float64(b))
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a, b, t):
    if t.is_float:
        with np.errstate(all="ignore"):
            return float(np.fmod(a, b))
    return 0 if b == 0 else a - b * _divide(a, b, t)


def _floor_divide(a, b, t):
    if t.is_float:
        return float(np.floor(t.round(_divide(a, b, t))))
    return 0 if b == 0 else a // b


def _floor_remainder(a, b, t):
    if t.is_float:
        r = _remainder(a, b, t)
        if r == 0:
            return math.copysign(0.0, b)
        return t.round(r + b) if (r < 0) != (b < 0) else r
    return 0 if b == 0 else a % b


def _pick(choose):
    """min or max, where a NaN wins."""
    return lambda a, b, t: a if a != a else b if b != b else choose(a, b)


def _shift_left(a, b, t):
    return a << b if 0 <= b < t.bits else 0


def _shift_right(a, b, t):
    return a >> b if 0 <= b < t.bits else (-1 if a < 0 else 0)


def _double(function):
    """An arithmetic operator in double, without Python's errors for overflow."""

    def apply(a, b, t):
        if not t.is_float:
            return function(a, b)
        with np.errstate(all="ignore"):
            return float(function(np.float64(a), np.float64(b)))

    return apply


# Binary nodes: (a, b, type of the operands) -> value, brought to the type of the result afterwards.
BINARY = {
    "Add": _double(lambda a, b: a + b),
    "Sub": _double(lambda a, b: a - b),
    "Mul": _double(lambda a, b: a * b),
    "Div": _divide,
    "Mod": _remainder,
    "FloorDiv": _floor_divide,
    "FloorMod": _floor_remainder,
    "Min": _pick(min),
    "Max": _pick(max),
    "EQ": lambda a, b, t: a == b,
    "NE": lambda a, b, t: a != b,
    "LT": lambda a, b, t: a < b,
    "LE": lambda a, b, t: a <= b,
    "GT": lambda a, b, t: a > b,
    "GE": lambda a, b, t: a >= b,
}


def _fma(a, b, c, t):
    if all(map(math.isfinite, (a, b, c))) and a * b + c != 0:
        return Fraction(a) * Fraction(b) + Fraction(c)
    with np.errstate(all="ignore"):  # exact: an infinity, a NaN or a zero
        exact = all(map(math.isfinite, (a, b, c))) and Fraction(a) * Fraction(b) + Fraction(c)
        return exact or float(np.float64(a) * np.float64(b) + np.float64(c))


def _wide(name):
    """A function of NumPy in its widest type: its error is far below that of one rounding."""
    function = getattr(np, name)

    def apply(*args):
        with np.errstate(all="ignore"):
            return float(function(*(np.longdouble(a) for a in args[:-1])))

    return apply


def _sqrt(x, t):
    with np.errstate(all="ignore"):  # in double: a wider one would round twice
        return float(np.sqrt(np.float64(x)))


def _sigmoid(x, t):
    with np.errstate(all="ignore"):
        return float(1 / (1 + np.exp(-np.longdouble(x))))


def _exp10(x, t):
    with np.errstate(all="ignore"):
        return float(np.longdouble(10) ** np.longdouble(x))


def _rsqrt(x, t):
    with np.errstate(all="ignore"):
        return float(1 / np.sqrt(np.longdouble(x)))


def _nextafter(a, b, t):
    return float(np.nextafter(t.numpy.type(a), t.numpy.type(b)))


def _ldexp(x, n, t):
    if n != n:
        return n
    with np.errstate(all="ignore"):
        n = max(min(n, 1e6), -1e6)
        return float(np.ldexp(np.longdouble(x), int(n))) if n == int(n) else x * 2.0**n


def _q_multiply_shift(x, y, q, s, t):
    shift = q - s
    return (x * y + (1 << (shift - 1)) >> shift) if shift > 0 else x * y << -shift


# Operators that work lane by lane: (*lanes of the arguments, type of the first argument) -> value.
LANE_WISE = {
    **{name: _wide(name) for name in ("exp", "exp2", "log", "log2", "log10", "log1p")},
    **{name: _wide(name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{
        name: _wide(name)
        for name in ("hypot", "copysign", "fmod", "fabs", "floor", "ceil", "trunc")
    },
    **{"a" + name: _wide("arc" + name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "sqrt": _sqrt,
    "atan2": _wide("arctan2"),
    "pow": _wide("power"),
    "round": _wide("rint"),
    "nearbyint": _wide("rint"),
    "erf": lambda x, t: math.erf(x),
    "sigmoid": _sigmoid,
    "exp10": _exp10,
    "rsqrt": _rsqrt,
    "nextafter": _nextafter,
    "ldexp": _ldexp,
    "fma": _fma,
    "isnan": lambda x, t: int(x != x),
    "likely": lambda x, t: x,
    "tvm_thread_invariant": lambda x, t: x,
    "bitwise_and": lambda a, b, t: a & b,
    "bitwise_or": lambda a, b, t: a | b,
    "bitwise_xor": lambda a, b, t: a ^ b,
    "bitwise_not": lambda a, t: ~a,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "popcount": lambda x, t: bin(x & ((1 << t.bits) - 1)).count("1"),
    "clz": lambda x, t: t.bits - (x & ((1 << t.bits) - 1)).bit_length(),
    "q_multiply_shift": _q_multiply_shift,
}
