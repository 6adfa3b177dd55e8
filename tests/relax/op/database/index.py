# SPDX-License-Identifier: Apache-2.0
"""Entries of the operators that read and write by index."""

import numpy as np

from .core import T, case, entry, with_dtypes


def _indices(*shape, high, dtype="int64", low=0, **options):
    return T(*shape, dtype=dtype, low=low, high=high, **options)


def _take(x, indices, axis=None, mode="fast"):
    return np.take(x, indices, axis, mode="wrap" if mode == "fast" else mode)


entry(
    "take",
    _take,
    [
        case(T(5, 3), _indices(2, 4, high=5), 0),
        case(T(5, 3), _indices(7, high=3, dtype="int32"), -1),
        case(T(9), _indices(2, high=9)),
        case(T(5, 3), _indices(high=5), 0),
        case(T(5, 3), _indices(0, high=5), 0),
        case(T(5, 3), _indices(4, low=-9, high=9), 0, "clip"),
        case(T(5, 3), _indices(4, low=-9, high=9), 0, "wrap"),
        case(T(1, 3, dtype="int8"), _indices(2, high=1), 0),
    ],
)


def _strided_slice(x, axes, begin, end, strides=None, assume_inbound=False):
    slices = [slice(None)] * x.ndim
    for i, axis in enumerate(axes):
        slices[axis] = slice(begin[i], end[i], strides[i] if strides else 1)
    return x[tuple(slices)]


_MANY = 1 << 40
entry(
    "strided_slice",
    _strided_slice,
    [
        case(T(8, 9), [0], [1], [5]),
        case(T(8, 9), [0, 1], [1, 2], [7, 9], [2, 3]),
        case(T(8, 9), [1], [-4], [_MANY]),
        case(T(8, 9), [0], [6], [2], [-1]),
        case(T(8, 9), [1], [7], [-_MANY], [-2]),
        case(T(8, 9), [-1], [3], [3]),
        case(T(8, 9), [0], [20], [30]),
        case(T(8, 9), [0], [0], [8], [3], assume_inbound=True),
        case(T(0, 3), [0], [0], [1]),
        case(T(1, 3), [0], [0], [1]),
    ],
)
entry(
    "dynamic_strided_slice",
    lambda x, begin, end, strides: x[tuple(map(slice, begin, end, strides))],
    [
        case(
            T(8, 9),
            *(T(values=v, dtype="int64") for v in ([1, 2], [7, 9], [2, 3])),
            symbolic=False,
        ),
        case(
            T(0, 3), *(T(values=v, dtype="int64") for v in ([0, 0], [0, 2], [1, 1])), symbolic=False
        ),
    ],
)


def _slice_scatter(x, src, start, end, step, axis=0):
    out = x.copy()
    slices = [slice(None)] * x.ndim
    slices[axis] = slice(start, end, step)
    out[tuple(slices)] = src
    return out


entry(
    "slice_scatter",
    _slice_scatter,
    [
        case(T(8, 3), T(3, 3), 1, 4, 1, symbolic=False),
        case(T(2, 9), T(2, 4), 1, 9, 2, axis=1, symbolic=False),
        case(T(5, 3), T(0, 3), 2, 2, 1, symbolic=False),
        case(T(1, 3), T(1, 3), 0, 1, 1, symbolic=False),
        case(T(8, 5, fixed=(0,)), T(3, 5, fixed=(0,)), 1, 4, 1),
    ],
)
entry(
    "gather_elements",
    lambda x, indices, axis=0: np.take_along_axis(x, indices, axis),
    [
        case(T(5, 3), _indices(2, 3, high=5)),
        case(T(5, 3), _indices(5, 7, high=3), axis=1),
        case(T(5, 3), _indices(5, 1, high=3), axis=-1),
        case(T(5, 3), _indices(0, 3, high=5)),
        case(T(9, dtype="int32"), _indices(4, high=9, dtype="int32")),
    ],
)


def _gather_nd(x, indices, batch_dims=0):
    if batch_dims == 0:
        return x[tuple(np.moveaxis(indices, -1, 0))]
    return np.stack([_gather_nd(a, i, batch_dims - 1) for a, i in zip(x, indices, strict=True)])


entry(
    "gather_nd",
    _gather_nd,
    [
        case(T(3, 4, 5), _indices(6, 2, high=3, fixed=(1,))),
        case(T(3, 4, 5), _indices(2, 7, 1, high=3, fixed=(2,))),
        case(T(2, 4, 5), _indices(2, 3, 1, high=4, fixed=(2,)), batch_dims=1),
        case(T(3, 4), _indices(0, 2, high=3, fixed=(1,))),
        case(T(3), _indices(5, 1, high=3, fixed=(1,))),
    ],
)
entry(
    "index_tensor",
    lambda x, indices: x[tuple(indices)],
    [
        case(T(5, 6, 7), [_indices(3, high=5)]),
        case(T(5, 6, 7), [_indices(3, 1, high=5), _indices(4, high=6)]),
        case(T(5, 6), [_indices(high=5), _indices(high=6)]),
        case(T(5, 6), [_indices(0, high=5)]),
        case(T(5, dtype="int8"), [_indices(9, high=5, dtype="int32")]),
    ],
)


def _index_put(x, indices, values, accumulate=False):
    out = x.copy()
    if accumulate:
        np.add.at(out, tuple(indices), values)
    else:
        out[tuple(indices)] = values
    return out


_row, _column = T(values=[0, 2, 4], dtype="int64"), T(values=[1, 3, 1], dtype="int64")
entry(
    "index_put",
    _index_put,
    [
        case(T(5, 6), [_row, _column], T(3)),
        case(T(5, 6), [_row, _column], T(3), accumulate=True),
        case(T(9), [T(values=[1, 1, 2], dtype="int64")], T(3), accumulate=True),
        case(T(5), [_indices(0, high=5)], T(0)),
    ],
)

# ---- scatter ------------------------------------------------------------------------------------
_REDUCE = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": max,
    "min": min,
}


def _scatter_elements(x, indices, updates, axis=0, reduction="update"):
    out = x.copy()
    for at in np.ndindex(*indices.shape):
        to = list(at)
        to[axis] = indices[at]
        out[tuple(to)] = _REDUCE[reduction](out[tuple(to)], updates[at])
    return out


def _scatter_nd(x, indices, updates, reduction="update"):
    out = x.copy()
    for at in np.ndindex(*indices.shape[:-1]):
        to = tuple(indices[at])
        old, new = np.asarray(out[to]), np.asarray(updates[at])
        out[to] = np.vectorize(_REDUCE[reduction], otypes=[x.dtype])(old, new)
    return out


_rows = T(values=[[0, 4, 2], [3, 1, 0]], dtype="int64")
entry(
    "scatter_elements",
    _scatter_elements,
    [
        case(T(5, 3), _rows, T(2, 3)),
        *[case(T(5, 3), _rows, T(2, 3), reduction=r) for r in _REDUCE],
        case(T(2, 5), _rows, T(2, 3), axis=1),
        case(T(2, 5, dtype="int32"), _rows, T(2, 3, dtype="int32"), axis=-1, reduction="add"),
        case(T(5, 3), _indices(0, 3, high=5), T(0, 3)),
    ],
)
_points = T(values=[[0, 1], [2, 3], [1, 1]], dtype="int64", fixed=(1,))
entry(
    "scatter_nd",
    _scatter_nd,
    [
        case(T(4, 5), _points, T(3)),
        *[case(T(4, 5), _points, T(3), reduction=r) for r in _REDUCE],
        case(T(4, 5, 6), _points, T(3, 6)),
        case(T(8), T(values=[[4], [3]], dtype="int64"), T(2)),
        case(T(4, 5), _indices(0, 2, high=4, fixed=(1,)), T(0)),
    ],
)


def _one_hot(indices, on, off, depth, axis=-1):
    dtype = "float64" if isinstance(on, float) else "int64"
    hot = np.moveaxis(np.arange(depth) == indices[..., None], -1, axis)
    return np.where(hot, on, off).astype(dtype)


entry(
    "one_hot",
    _one_hot,
    [
        case(_indices(5, high=4), 1, 0, 4),
        case(_indices(2, 3, high=4, dtype="int32"), 1.0, 0.0, 4, axis=0),
        case(_indices(2, 3, high=4), 2.0, -1.0, 5, axis=1),
        case(_indices(high=3), 1, 0, 3),
        case(_indices(0, high=3), 1, 0, 3),
        case(_indices(4, low=-3, high=9), 1, 0, 3),
        case(T(values=[-1, 0, 2, 3, 2**31 - 1, -(2**31)], dtype="int32"), 1, 0, 3),
    ],
)

entry(
    "bucketize",
    lambda x, boundaries, out_int32=False, right=False: np.searchsorted(
        boundaries, x, "right" if right else "left"
    ).astype("int32" if out_int32 else "int64"),
    [
        case(T(3, 4), T(values=[-1.0, 0.0, 1.0])),
        case(T(values=[-1.0, 0.0, 1.0, 5.0]), T(values=[-1.0, 0.0, 1.0]), right=True),
        case(T(7, dtype="int32"), T(values=[0, 3], dtype="int32"), out_int32=True),
        case(T(0), T(values=[0.0])),
        case(T(), T(values=[0.0, 0.5])),
    ],
)


def _unique(x, axis=None, **which):
    return np.unique(x, axis=axis, **which)


entry(
    "unique",
    _unique,
    [
        *with_dtypes(["int32", "float32"], T(values=[3, 1, 3, 2, 1])),
        case(T(values=[[1, 2], [1, 2], [3, 4]], dtype="int32"), axis=0),
        case(T(values=[3, 1, 3], dtype="int64"), return_index=True, return_counts=True),
        case(T(0)),
        case(T()),
    ],
)
entry(
    "nonzero",
    lambda x: np.stack(np.nonzero(x)),
    [
        case(T(values=[0.0, 1.0, np.nan, -0.0])),
        case(T(values=[[0, 1], [2, 0]], dtype="int32")),
        case(T(0)),
    ],
)
