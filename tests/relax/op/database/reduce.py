# SPDX-License-Identifier: Apache-2.0
"""Entries of reductions, scans, sorting, products and sampling."""

import numpy as np

from .core import FLOATS, INTS, T, case, entry, with_dtypes


def _cases(dtypes):
    return [
        *with_dtypes(dtypes, T(3, 5), axis=1),
        case(T(2, 3, 4)),
        case(T(2, 3, 4), axis=[0, -1]),
        case(T(2, 3, 4), axis=[1], keepdims=True),
        case(T(2, 3, 4), keepdims=True),
        case(T(1, 17), axis=0),
        case(T(), axis=None),
        case(T(3, 5), axis=[]),
        case(T(0, 3), axis=1),
    ]


def _reduce(function, wide=False):
    def call(x, axis=None, keepdims=False):
        axis = tuple(axis) if isinstance(axis, list) else axis
        data = x.astype("float64") if wide and x.dtype.kind != "i" else x
        return function(data, axis=axis, keepdims=keepdims).astype(x.dtype)

    return call


_NAN = case(T(values=[[1.0, np.nan, 2.0], [-np.inf, -np.inf, -np.inf]]), axis=1)
entry("max", _reduce(np.max), [*_cases([*FLOATS, *INTS, "bool"]), _NAN])
entry("min", _reduce(np.min), [*_cases([*FLOATS, *INTS, "bool"]), _NAN])
entry(
    "sum",
    _reduce(np.sum, wide=True),
    [*_cases(["float32", "float64", "int32", "int64", "bool"]), case(T(0, 3), axis=0), _NAN],
)
entry(
    "prod",
    _reduce(np.prod),
    [*_cases(["float32", "float64", "int32", "bool"]), case(T(3, 0), axis=1)],
)
entry(
    "mean",
    _reduce(np.mean, wide=True),
    [*_cases(["float32", "float64"]), _NAN, case(T(0, 3), axis=1)],
)
entry("std", _reduce(np.std, wide=True), [*_cases(["float32", "float64"]), case(T(3, 0), axis=0)])
entry(
    "variance", _reduce(np.var, wide=True), [*_cases(["float32", "float64"]), case(T(3, 0), axis=0)]
)


def _median(x, axis=None, keepdims=False):
    axis = axis[0] if isinstance(axis, list) and len(axis) == 1 else axis
    if not isinstance(axis, int):
        axes = tuple(range(x.ndim)) if axis is None else tuple(a % x.ndim for a in axis)
        kept = [i for i in range(x.ndim) if i not in axes]
        flat = np.transpose(x, (*kept, *axes)).reshape(*(x.shape[i] for i in kept), -1)
        values = np.sort(flat, -1)[..., (flat.shape[-1] - 1) // 2]
        shape = [1 if i in axes else d for i, d in enumerate(x.shape)]
        return values.reshape(shape) if keepdims else values
    order = np.argsort(x, axis, kind="stable")
    middle = np.take(order, [(x.shape[axis] - 1) // 2], axis)
    values = np.take_along_axis(x, middle, axis)
    if keepdims:
        return values, middle
    return values.squeeze(axis), middle.squeeze(axis)


entry(
    "median",
    _median,
    [
        case(T(3, 5), axis=1),
        case(T(3, 4), axis=[0], keepdims=True),
        case(T(3, 5)),
        case(T(2, 3, 5), axis=[0, 2]),
        case(T(0, 3), axis=1),
    ],
)


def _arg(function):
    def call(x, axis=None, keepdims=False):
        return function(x, axis=axis, keepdims=keepdims).astype("int64")

    return call


_ARG = [
    *with_dtypes(["float32", "int32", "uint8"], T(3, 5), axis=1),
    case(T(2, 3, 4)),
    case(T(2, 3, 4), axis=-1, keepdims=True),
    case(T(2, 3), keepdims=True),
    case(T(values=[3.0, 1.0, 3.0, 1.0]), axis=0),
    case(T(values=[-np.inf, -np.inf]), axis=0),
    case(T(0, 3), axis=1),
]
entry("argmax", _arg(np.argmax), _ARG)
entry("argmin", _arg(np.argmin), _ARG)


def _scan(function, start):
    def call(x, axis=None, dtype=None, exclusive=False):
        dtype = dtype or x.dtype
        if axis is None:
            x, axis = x.ravel(), 0
        result = function(x, axis=axis, dtype=dtype)
        if not exclusive:
            return result
        first = np.full_like(np.take(result, [0], axis), start) if x.shape[axis] else result
        rest = np.take(result, range(max(x.shape[axis] - 1, 0)), axis)
        return np.concatenate([first, rest], axis)

    return call


_SCAN = [
    *with_dtypes(["float32", "int32", "int64"], T(3, 5), axis=1),
    case(T(2, 3, 4)),
    case(T(2, 3), axis=-1, exclusive=True),
    case(T(4, dtype="int8"), axis=0, dtype="int32"),
    case(T(0, 3), axis=1),
    case(T(1, 1), axis=0),
]
entry("cumsum", _scan(np.cumsum, 0), _SCAN)
entry("cumprod", _scan(np.cumprod, 1), _SCAN)


def _sort(x, axis=-1, descending=False):
    result = np.sort(x, axis)
    return np.flip(result, axis) if descending else result


def _argsort(x, axis=-1, descending=False, dtype="int32"):
    key = -x.astype("float64") if descending else x
    return np.argsort(key, axis, kind="stable").astype(dtype)


_SORT = [
    *with_dtypes(["float32", "int32", "int8"], T(3, 5)),
    case(T(4, 3), axis=0, descending=True),
    case(T(2, 3, 4), axis=1),
    case(T(0, 3)),
    case(T(1)),
]
entry("sort", _sort, [*_SORT, case(T(values=[2.0, -np.inf, np.inf, -0.0]))])
entry("argsort", _argsort, [*_SORT, case(T(5), dtype="int64"), case(T(values=[1.0, 1.0, 0.0]))])


def _topk(x, k=1, axis=-1, ret_type="both", largest=True, dtype="int32"):
    order = _argsort(x, axis, largest, dtype)
    count = k if k > 0 else x.shape[axis]
    indices = np.take(order, range(count), axis)
    values = np.take_along_axis(x, indices.astype("int64"), axis)
    return {"both": (values, indices), "values": values, "indices": indices}[ret_type]


entry(
    "topk",
    _topk,
    [
        case(T(3, 5), k=2),
        case(T(3, 5), k=3, axis=0, largest=False),
        case(T(7), k=0),
        case(T(3, 5), k=2, ret_type="values"),
        case(T(3, 5), k=2, ret_type="indices", dtype="int64"),
        case(T(0, 3), k=1),
        case(T(values=[1.0, 1.0, 2.0, 2.0]), k=3),
    ],
)

# ---- products -----------------------------------------------------------------------------------


def _matmul(a, b, out_dtype=None):
    wide = "int64" if a.dtype.kind in "iu" else "float64"
    return np.matmul(a.astype(wide), b.astype(wide)).astype(out_dtype or a.dtype)


entry(
    "matmul",
    _matmul,
    [
        *with_dtypes(["float16", "float32", "float64", "int32"], T(3, 4), T(4, 5)),
        case(T(2, 3, 4), T(2, 4, 5)),
        case(T(2, 3, 4), T(4, 5)),
        case(T(7, 1, 3, 4), T(2, 4, 5)),
        case(T(4), T(4, 5)),
        case(T(3, 4), T(4)),
        case(T(4), T(4)),
        case(T(4), T(2, 4, 5)),
        case(T(3, 4, dtype="int8"), T(4, 5, dtype="int8"), out_dtype="int32"),
        case(T(0, 4), T(4, 5)),
        case(T(3, 0), T(0, 5)),
        case(T(1, 17), T(17, 1)),
    ],
    rtol=1e-4,
)
entry("outer", np.outer, [case(T(3), T(5)), case(T(0), T(5)), case(T(1), T(1)), case(T(2), T(2))])
entry(
    "einsum",
    lambda xs, subscripts: np.einsum(subscripts, *xs),
    [
        case([T(3, 4), T(4, 5)], "ij,jk->ik"),
        case([T(3, 4), T(4, 5)], "ij,jk"),
        case([T(3, 3)], "ii"),
        case([T(2, 3, 4), T(2, 4, 5)], "...ij,...jk->...ik"),
        case([T(2, 3, 4)], "...ij->...ji"),
        case([T(3), T(5)], "i, j -> ij"),
        case([T(3, 4)], "ij->"),
        case([T(0, 4), T(4, 5)], "ij,jk->ik"),
    ],
    rtol=1e-4,
)


def _multinomial(prob, sample, indices, dtype="int64"):
    sums = np.cumsum(prob.astype("float64"), 1)
    rows = sums[indices[:, 0]]
    return (rows < sample * rows[:, -1:]).sum(1, keepdims=True).astype(dtype)


entry(
    "multinomial_from_uniform",
    _multinomial,
    [
        case(
            T(values=[[0.2, 0.3, 0.5], [0.3, 0.4, 0.3]]),
            T(values=[[0.4], [0.9], [0.1]]),
            T(values=[[0], [1], [1]], dtype="int64"),
        ),
        case(T(values=[[1.0]]), T(values=[[0.5]]), T(values=[[0]], dtype="int64"), dtype="int32"),
        case(T(2, 3), T(0, 1), T(0, 1, dtype="int64")),
    ],
)
