# SPDX-License-Identifier: Apache-2.0
"""Entries of the operators that give tensors other shapes, join and split them."""

import numpy as np
import tvm

from .core import FLOATS, INTS, S, T, case, entry, with_dtypes

_ALL = [*FLOATS, *INTS, "bool"]

entry(
    "reshape",
    np.reshape,
    [
        *with_dtypes(_ALL, T(2, 6), (3, 4)),
        case(T(2, 3, 4), (-1,)),
        case(T(2, 3, 4), (2, -1)),
        case(T(3, 5), (5, 3)),
        case(T(1), ()),
        case(T(), (1, 1)),
        case(T(0, 3), (3, 0)),
        case(T(7, 3), S((7, 3))),
    ],
)
entry(
    "broadcast_to",
    np.broadcast_to,
    [
        case(T(3), S((2, 3))),
        case(T(2, 1), S((2, 5))),
        case(T(), S((3, 1))),
        case(T(1, 0), S((4, 0))),
        case(T(7, dtype="int8"), S((7,))),
    ],
)


def _collapse(x, shape):
    extra = x.ndim - len(shape)
    x = x.sum(axis=tuple(range(extra)), dtype=x.dtype) if extra else x
    axes = tuple(i for i, d in enumerate(shape) if d == 1 and x.shape[i] != 1)
    return x.sum(axis=axes, keepdims=True, dtype=x.dtype) if axes else x


entry(
    "collapse_sum_to",
    _collapse,
    [
        case(T(2, 3), S((3,))),
        case(T(4, 2, 3), S((2, 1))),
        case(T(2, 3), S((2, 3))),
        case(T(0, 3), S((3,))),
    ],
)
entry(
    "collapse_sum_like",
    lambda x, like: _collapse(x, like.shape),
    [case(T(2, 3), T(3)), case(T(4, 2, 3), T(1, 1, 3)), case(T(5), T()), case(T(0, 3), T(1, 3))],
)
entry("flatten", np.ravel, [case(T(2, 3, 5)), case(T()), case(T(7)), case(T(0, 3)), case(T(1, 1))])
entry(
    "expand_dims",
    lambda x, axis: np.expand_dims(x, tuple(axis) if isinstance(axis, list) else axis),
    [
        case(T(2, 3), 0),
        case(T(2, 3), -1),
        case(T(2, 3), [1, 3]),
        case(T(), [0, 1]),
        case(T(0), 1),
        case(T(3), [-1, 0]),
    ],
)
entry(
    "squeeze",
    lambda x, axis=None: np.squeeze(x, tuple(axis) if isinstance(axis, list) else axis),
    [
        case(T(2, 1, 3), 1),
        case(T(1, 3, 1)),
        case(T(1, 2, 1), [0, -1]),
        case(T(1, 1)),
        case(T(0, 1), 1),
        case(T()),
    ],
)
entry(
    "permute_dims",
    np.transpose,
    [
        *with_dtypes(_ALL, T(2, 3)),
        case(T(2, 3, 4), [0, 2, 1]),
        case(T(2, 3, 4), [-1, 0, 1]),
        case(T()),
        case(T(0, 5)),
        case(T(1, 17)),
    ],
)


def _layout_transform(x, index_map, pad_value=0):
    shape = [int(d) for d in index_map.map_shape(x.shape)]
    out = np.full(shape, pad_value, x.dtype)
    for index in np.ndindex(*x.shape):
        out[tuple(int(i) for i in index_map.map_indices(list(index)))] = x[index]
    return out


_transpose = tvm.tir.IndexMap.from_func(lambda i, j: [j, i])
_block = tvm.tir.IndexMap.from_func(lambda i, j: [i, j // 4, j % 4])
entry(
    "layout_transform",
    _layout_transform,
    [
        case(T(3, 5), _transpose),
        case(T(2, 8), _block, symbolic=False),
        case(T(2, 7), _block, pad_value=0, symbolic=False),
        case(T(1, 4), _block, symbolic=False),
        case(T(0, 8), _block, symbolic=False),
    ],
)

# ---- joining and splitting ----------------------------------------------------------------------
entry(
    "concat",
    lambda xs, axis=0: np.concatenate(xs, axis),
    [
        *with_dtypes(_ALL, [T(2, 3), T(4, 3)]),
        case([T(2, 3), T(2, 1), T(2, 7)], axis=1),
        case([T(2, 3), T(2, 3)], axis=-1),
        case([T(3), T(4)], axis=None),
        case([T(0, 3), T(2, 3)]),
        case([T(5, 2)]),
    ],
)
entry(
    "stack",
    lambda xs, axis=0: np.stack(xs, axis),
    [
        *with_dtypes(_ALL, [T(2, 3), T(2, 3)]),
        case([T(2, 3)] * 3, axis=1),
        case([T(2, 3)] * 2, axis=-1),
        case([T(), T()]),
        case([T(0, 2), T(0, 2)]),
    ],
)


def _split(x, indices_or_sections, axis=0):
    if not isinstance(indices_or_sections, int):
        return np.split(x, indices_or_sections, axis)
    if indices_or_sections == 1:
        return x
    length = -(-x.shape[axis] // indices_or_sections)
    return np.split(x, [length * i for i in range(1, indices_or_sections)], axis)


entry(
    "split",
    _split,
    [
        case(T(6, 2), 3),
        case(T(7, 2), 3),
        case(T(2, 9), [2, 5], axis=1),
        case(T(2, 9), [2, 20], axis=-1, symbolic=False),
        case(T(4, 3), 1),
        case(T(0, 3), 2),
        case(T(8, dtype="int8"), 2),
    ],
)
entry(
    "repeat",
    np.repeat,
    [
        case(T(2, 3), 2, 0),
        case(T(2, 3), 3, -1),
        case(T(2, 3), 2),
        case(T(0, 3), 2, 1),
        case(T(5), 1, 0),
        case(T(), 3),
    ],
)
entry(
    "tile",
    np.tile,
    [
        case(T(2, 3), (2, 1)),
        case(T(2, 3), (3,)),
        case(T(3), (2, 2)),
        case(T(), (4,)),
        case(T(0, 2), (1, 3)),
        case(T(2, 3), 2),
    ],
)
entry(
    "flip",
    np.flip,
    [
        case(T(2, 3), 0),
        case(T(2, 3), -1),
        case(T(0, 3), 1),
        case(T(17, dtype="int8"), 0),
        case(T(1, 1), 1),
    ],
)
entry(
    "meshgrid",
    lambda xs, indexing="ij": np.meshgrid(*xs, indexing=indexing),
    [
        case([T(2), T(3)]),
        case([T(2), T(3), T(5)], indexing="ij"),
        case([T(2), T(3)], indexing="xy"),
        case([T(0), T(3)]),
        case([T(1)]),
    ],
)
