# SPDX-License-Identifier: Apache-2.0
"""Entries of the operators that make tensors, and of changes of type."""

import numpy as np

from .core import FLOATS, S, T, case, entry, with_dtypes


def _full(shape, value, dtype=None):
    return np.full(shape, value, dtype or value.dtype)


entry(
    "full",
    _full,
    [
        case(S((2, 3)), T()),
        case(S(()), T(dtype="int32")),
        case(S((0, 4)), T(), dtype="float16"),
        case(S((1, 17)), T(values=np.nan)),
    ],
)
entry(
    "full_like",
    lambda x, value, dtype=None: np.full(x.shape, value, dtype or x.dtype),
    [
        case(T(2, 3), T()),
        case(T(0, 2, dtype="int32"), T(dtype="int32")),
        case(T(), T(), dtype="float64"),
    ],
)
for _name in ("ones", "zeros"):
    entry(
        _name,
        getattr(np, _name),
        [
            case(S((2, 3)), "float32"),
            case(S(()), "int64"),
            case(S((0, 5)), "bool"),
            case(S((7, 1, 3)), "bfloat16"),
        ],
    )
    entry(
        f"{_name}_like",
        lambda x, dtype=None, name=_name: getattr(np, name)(x.shape, dtype or x.dtype),
        [*with_dtypes([*FLOATS, "int8"], T(2, 3)), case(T(0)), case(T(), dtype="int32")],
    )
entry(
    "eye",
    lambda n, m=None, k=0, dtype="float32": np.eye(n, m, k, dtype),
    [
        case(3, symbolic=False),
        case(3, 5, symbolic=False),
        case(4, 3, 1, "int64", symbolic=False),
        case(5, 5, -2, symbolic=False),
        case(0, 3, symbolic=False),
    ],
)
entry(
    "eye_like",
    lambda x, k=0, dtype=None: np.eye(*x.shape, k, dtype or x.dtype),
    [case(T(3, 3)), case(T(2, 5), 1), case(T(4, 2), -1, "int32"), case(T(0, 3))],
)


def _arange(start, end=None, step=1, dtype=None):
    floats = any(isinstance(v, float) for v in (start, end, step))
    bounds = (start,) if end is None else (start, end, step)
    return np.arange(*bounds, dtype=dtype or ("float32" if floats else "int64"))


entry(
    "arange",
    _arange,
    [
        case(7),
        case(2, 9),
        case(1, 10, 3),
        case(10, 0, -3),
        case(5, 2),
        case(0),
        case(0.0, 1.0, 0.25),
        case(1, 6, 2, "float32"),
        case(1.0, 4.0),
    ],
)


def _hamming(size, periodic, alpha, beta, dtype):
    if size == 1:
        return np.ones(1, dtype)
    count = size if periodic else size - 1
    angle = 2 * np.pi * np.arange(size) / count
    return (alpha - beta * np.cos(angle)).astype(dtype)


entry(
    "hamming_window",
    _hamming,
    [
        case(10, True, 0.54, 0.46, "float32"),
        case(7, False, 0.5, 0.5, "float32"),
        case(1, True, 0.54, 0.46, "float32"),
    ],
)
for _name in ("tril", "triu"):
    entry(
        _name,
        getattr(np, _name),
        [
            case(T(3, 3)),
            case(T(2, 4, 5), 1),
            case(T(5, 2, dtype="int32"), -1),
            case(T(0, 3)),
            case(T(3, 3), 7),
            case(T(values=[[np.nan, 1.0], [np.inf, -0.0]])),
        ],
    )
entry(
    "astype",
    lambda x, dtype: x.astype(dtype),
    [
        case(T(2, 3), "float16"),
        case(T(2, 3), "int32"),
        case(T(3, dtype="int32"), "float32"),
        case(T(3, dtype="bool"), "float32"),
        case(T(3, dtype="int64"), "int8"),
        case(T(0, 3), "bfloat16"),
        case(T(), "float64"),
    ],
)
entry(
    "wrap_param",
    lambda x, dtype="float32": x.astype(dtype),
    [case(T(2, 3, dtype="float16")), case(T(4), "float16"), case(T(0))],
)
