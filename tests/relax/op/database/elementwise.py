# SPDX-License-Identifier: Apache-2.0
"""Entries of the elementwise operators."""

import math

import numpy as np

from .core import FLOATS, INTS, T, case, edge_values, entry, with_dtypes


def _edges(*dtypes):
    return [case(T(dtype=d, values=edge_values(d))) for d in dtypes]


def _unary(low=None, high=None):
    x = T(2, 3, low=low, high=high)
    return [
        *with_dtypes(FLOATS, x),
        case(T(low=low, high=high)),
        case(T(0, 3)),
        case(T(1, 17, 1, low=low, high=high)),
    ]


def _erf(x):
    wide = np.vectorize(math.erf, otypes=["float64"])(x.astype("float64"))
    return wide.astype(x.dtype)


def _sigmoid(x):
    return (1 / (1 + np.exp(-x.astype("float64")))).astype(x.dtype)


def _float(name, reference, low=None, high=None, **options):
    entry(name, reference, [*_unary(low, high), *_edges("float32", "float64")], **options)


for _name in ("cos", "cosh", "exp", "sin", "sinh", "tan", "tanh"):
    _float(_name, getattr(np, _name))
_float("acos", np.arccos, -1, 1)
_float("asin", np.arcsin, -1, 1)
_float("atan", np.arctan)
_float("acosh", np.arccosh, 1, 9)
_float("asinh", np.arcsinh)
_float("atanh", np.arctanh, -0.9, 0.9)
_float("erf", _erf)
_float("log", np.log, 0.1, 9)
_float("sqrt", np.sqrt, 0, 9)
_float("rsqrt", lambda x: (1 / np.sqrt(x.astype("float64"))).astype(x.dtype), 0.1, 9)
_float("sigmoid", _sigmoid)
for _name in ("isfinite", "isinf", "isnan"):
    _float(_name, getattr(np, _name))

_ANY = [*_unary(), *with_dtypes(INTS, T(3, 5))]
_INT_EDGES = _edges("float32", "int8", "int32", "int64", "uint8")
entry("abs", np.abs, [*_ANY, *_INT_EDGES])
entry("negative", np.negative, [*_ANY, *_INT_EDGES])
entry("sign", np.sign, [*_ANY, *_INT_EDGES])
entry("square", np.square, [*_ANY, *_INT_EDGES])
for _name in ("ceil", "floor", "trunc"):
    entry(_name, getattr(np, _name), [*_unary(), *_edges("float32")])
entry("round", np.round, [*_unary(), case(T(values=[0.5, 1.5, 2.5, -0.5, -1.5]))])
entry(
    "bitwise_not",
    np.bitwise_not,
    [
        *with_dtypes([*INTS, "bool"], T(3, 5)),
        *(case(T(*shape, dtype="int32")) for shape in ((), (0, 3))),
        *_edges("int32", "uint8"),
    ],
)
entry(
    "logical_not",
    np.logical_not,
    [*(case(T(*shape, dtype="bool")) for shape in ((3, 5), (), (0,))), *_edges("bool")],
)
entry(
    "clip",
    np.clip,
    [
        case(T(2, 3), -1, 1),
        case(T(2, 3), -0.5, 0.5),
        case(T(7, dtype="int32"), 0, 6),
        case(T(0, 3), 0, 6),
        case(T(), 0, 1),
        *[case(T(dtype=d, values=edge_values(d)), -2, 5) for d in ("float32", "int8")],
    ],
)

# ---- activations --------------------------------------------------------------------------------


def _wide(function):
    return lambda x, *args, **kwargs: function(x.astype("float64"), *args, **kwargs).astype(x.dtype)


def _gelu(x):
    return x * 0.5 * (1 + _erf(x / np.sqrt(2)))


def _gelu_tanh(x):
    return x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _selu(x):
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _softplus(x, beta=1.0, threshold=20.0):
    return np.where(x * beta > threshold, x, np.log1p(np.exp(np.minimum(x * beta, 700))) / beta)


entry("nn.relu", lambda x: np.maximum(x, 0).astype(x.dtype), [*_ANY, *_INT_EDGES])
entry("nn.gelu", _wide(_gelu), _unary())
entry("nn.gelu_tanh", _wide(_gelu_tanh), _unary())
entry("nn.selu", _wide(_selu), [*_unary(), *_edges("float32")])
entry("nn.silu", _wide(lambda x: x / (1 + np.exp(-x))), _unary())
entry(
    "nn.leakyrelu",
    lambda x, alpha=0.01: np.where(x > 0, x, x * alpha).astype(x.dtype),
    [*_unary(), case(T(5, 7), alpha=0.3), *_edges("float32")],
)
entry(
    "nn.softplus",
    _wide(_softplus),
    [*_unary(), case(T(9, low=-30, high=30)), case(T(5), beta=2.0, threshold=3.0)],
)

# ---- two operands -------------------------------------------------------------------------------
_SHAPES = [
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((4, 1, 5), (3, 1)),
    ((), (2, 3)),
    ((), ()),
    ((0, 3), (1, 3)),
    ((1, 17), (7, 1)),
]


def _binary(dtype="float32", low=None, high=None):
    ranges = {"dtype": dtype, "low": low, "high": high}
    return [case(T(*a, **ranges), T(*b, **ranges)) for a, b in _SHAPES]


def _pairs(*dtypes):
    """All pairs of edge values."""
    cases = []
    for dtype in dtypes:
        values = edge_values(dtype)
        a, b = values[:, None], values[None, :]
        cases.append(case(T(dtype=dtype, values=a), T(dtype=dtype, values=b)))
    return cases


def _numbers(dtypes, **ranges):
    x = T(2, 3, **ranges)
    return [*_binary(**ranges), *with_dtypes(dtypes, x, x)]


def _truncdiv(a, b):
    if a.dtype.kind not in "iu":
        return a / b
    quotient = np.where(b == 0, 0, np.trunc(a.astype("f8") / np.where(b == 0, 1, b).astype("f8")))
    return quotient.astype(a.dtype)


def _zero_safe(function):
    def call(a, b):
        if a.dtype.kind not in "iu":
            return function(a, b)
        return np.where(b == 0, 0, function(a, np.where(b == 0, 1, b))).astype(a.dtype)

    return call


for _name in ("add", "subtract", "multiply", "maximum", "minimum"):
    entry(
        _name,
        getattr(np, _name),
        [*_numbers([*FLOATS, *INTS]), *_pairs("float32", "int8", "int32", "uint8")],
    )
entry("divide", _truncdiv, [*_numbers(["float32", "float64", "int32"]), *_pairs("float32")])


def _floor_divide(a, b):
    """The quotient rounded down; NumPy makes it NaN where it is infinite."""
    return np.floor(a / b) if a.dtype.kind == "f" else _zero_safe(np.floor_divide)(a, b)


entry(
    "floor_divide",
    _floor_divide,
    [*_numbers(["int8", "int32", "uint8"], low=1), *_pairs("int32", "uint8")],
)
entry("mod", _zero_safe(np.fmod), [*_numbers(["int8", "int32", "uint8"]), *_pairs("int32")])
entry("floor_mod", _zero_safe(np.mod), [*_numbers(["int8", "int32", "uint8"]), *_pairs("int32")])
entry("power", np.power, [*_numbers(["float32", "float64"], low=0.1, high=3)])
entry("log_add_exp", np.logaddexp, [*_numbers(["float32", "float64"])])
for _name in ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal"):
    entry(
        _name,
        getattr(np, _name),
        [*_numbers([*FLOATS, *INTS]), *_pairs("float32", "int32")],
    )
for _name in ("logical_and", "logical_or", "logical_xor"):
    entry(_name, getattr(np, _name), [*_binary("bool"), *_pairs("bool")])
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    entry(_name, getattr(np, _name), [*_numbers(INTS, dtype="int32"), *_pairs("int32", "uint8")])
for _name in ("left_shift", "right_shift"):
    entry(
        _name,
        getattr(np, _name),
        [
            *_binary("int32", 0, 7),
            *with_dtypes(INTS, T(3, 4, low=0, high=7), T(4, low=0, high=7)),
            case(
                T(values=edge_values("int32"), dtype="int32"),
                T(values=[0, 1, 2, 31, 32, 33, 40, 31, 31, 32, 32, 63], dtype="int32"),
            ),
        ],
    )
entry(
    "ewise_fma",
    lambda a, b, c: a * b + c,
    [case(T(2, 3), T(2, 3), T(2, 3)), case(T(), T(), T()), case(T(0, 2), T(0, 2), T(0, 2))],
)
entry(
    "where",
    np.where,
    [
        case(T(2, 3, dtype="bool"), T(2, 3), T(2, 3)),
        case(T(2, 1, dtype="bool"), T(3), T(4, 1, 1)),
        case(T(dtype="bool"), T(dtype="int32"), T(5, dtype="int32")),
        case(T(0, 3, dtype="bool"), T(0, 3), T(1, 3)),
    ],
)
