# SPDX-License-Identifier: Apache-2.0
"""Operators that read and write at indices which are data."""

import numpy as np
import pytest
from tvm import te, topi

from .checking import check, values

A = values(4, 5, 6)


def indices(*shape, below, seed=0, dtype="int64"):
    return np.random.default_rng(seed).integers(0, below, shape).astype(dtype)


def test_take():
    i = indices(3, 2, below=5)
    check(lambda x, i: topi.take(x, i, 1), [A, i], np.take(A, i, 1))
    check(lambda x, i: topi.take(x, i, 1), [A, i], np.take(A, i, 1), symbolic=True)
    flat = indices(7, below=120, dtype="int32")
    check(topi.take, [A, flat], np.take(A, flat))
    check(lambda x: topi.take(x, te.const(2, "int64"), 0), [A], A[2])
    outside = np.array([-3, 0, 7, 5, -9], "int32")
    for mode in ("clip", "wrap"):
        expected = np.take(A, outside, 1, mode=mode)
        check(lambda x, i, m=mode: topi.take(x, i, 1, mode=m), [A, outside], expected)
    expected = np.full((5, 5, 6), np.nan, "float32")
    expected[1] = A[0]
    check(lambda x, i: topi.take(x, i, 0, mode="nan"), [A, outside], expected)
    batch = indices(4, 3, below=5)
    check(
        lambda x, i: topi.take(x, i, 1, batch_dims=1),
        [A, batch],
        np.stack([A[b][batch[b]] for b in range(4)]),
    )


def test_gather():
    i = indices(4, 2, 6, below=5)
    check(lambda x, i: topi.gather(x, 1, i), [A, i], np.take_along_axis(A, i, 1))
    two = np.stack([indices(3, below=4), indices(3, below=5, seed=1)])
    check(topi.gather_nd, [A, two], A[two[0], two[1]])
    one = indices(1, 4, 3, below=5)
    expected = np.stack([A[b][one[0, b]] for b in range(4)])
    check(lambda x, i: topi.gather_nd(x, i, 1), [A, one], expected)


def test_index_tensor():
    i, j = indices(3, 1, below=4), indices(2, below=5, seed=1) - 5
    check(lambda x, i, j: topi.index_tensor(x, [i, j]), [A, i, j], A[i, j])
    check(lambda x, i: topi.index_tensor(x, [i]), [A, i], A[i])
    check(lambda x, i, j: topi.adv_index(x, [i, j]), [A, i, j], A[i, j])


def test_one_hot():
    i = np.array([[0, 2], [5, -1]], "int32")
    for axis in (-1, 0, 1):
        expected = np.moveaxis((i[..., None] == np.arange(4)) * 3 + 1, -1, axis)
        build = lambda t, axis=axis: topi.one_hot(t, 4, 1, 4, axis, "float32")
        check(build, [i], expected.astype("float32"))


def test_places():
    flat, shape = indices(9, below=60), np.array([3, 4, 5], "int64")
    check(topi.unravel_index, [flat, shape], np.stack(np.unravel_index(flat, (3, 4, 5))))
    data, length = values(5, 3, 2), np.array([2, 5, 0], "int32")
    expected = np.where((np.arange(5)[:, None] < length)[..., None], data, -1)
    check(lambda x, n: topi.sequence_mask(x, n, -1.0, 0), [data, length], expected)
    places = np.array([[0, 1], [2, 3]], "int32")
    dense = np.full((3, 4), 9, "float32")
    dense[0, 1], dense[2, 3] = 1, 2
    check(
        lambda i, v: topi.sparse_to_dense(i, (3, 4), v, 9),
        [places, np.array([1, 2], "float32")],
        dense,
    )


# ---- writing ----------------------------------------------------------------------------------
REDUCE = {
    "update": lambda old, new: new[-1],
    "add": lambda old, new: old + sum(new),
    "mul": lambda old, new: old * np.prod(new),
    "mean": lambda old, new: (old + sum(new)) / (1 + len(new)),
    "max": lambda old, new: max(old, *new),
    "min": lambda old, new: min(old, *new),
}


def scattered(data, places, updates, reduction):
    """Updates of one place are collected, then combined."""
    result, found = data.copy(), {}
    for place, update in zip(places, updates, strict=True):
        found.setdefault(place, []).append(update)
    for place, new in found.items():
        result[place] = REDUCE[reduction](data[place], new)
    return result


@pytest.mark.parametrize("reduction", REDUCE)
def test_scatter(reduction):
    i, u = indices(4, 9, 6, below=5), values(4, 9, 6, seed=1)
    i[0] -= 5  # from the end
    all_places = list(np.ndindex(*i.shape))
    places = [(p[0], i[p] % 5, p[2]) for p in all_places]
    expected = scattered(A, places, [u[p] for p in all_places], reduction)
    build = lambda x, i, u: topi.scatter_elements(x, i, u, 1, reduction)
    check(build, [A, i, u], expected)
    check(build, [A, i, u], expected, symbolic=True)
    two = np.stack([indices(7, below=4), indices(7, below=5, seed=1)])
    u = values(7, 6, seed=2)
    places = [(two[0, k], two[1, k], c) for k in range(7) for c in range(6)]
    expected = scattered(A, places, u.ravel(), reduction)
    check(lambda x, i, u: topi.scatter_nd(x, i, u, reduction), [A, two, u], expected)


def test_index_put():
    i, j, v = indices(3, 1, below=4), indices(2, below=5, seed=1), values(3, 2, 6, seed=2)
    build = lambda x, v, i, j: topi.index_put(x, [i, j], v)
    expected = A.copy()
    expected[i, j] = v
    check(build, [A, v, i, j], expected)
    expected = A.copy()
    np.add.at(expected, (i, j), v[:, :, :1])
    check(
        lambda x, v, i, j: topi.index_put(x, [i, j], v, True),
        [A, v[:, :, :1].copy(), i, j],
        expected,
    )


def test_take_backward():
    i, g = indices(3, 2, below=5), values(4, 3, 2, 6)
    expected = np.zeros_like(A)
    np.add.at(expected, (slice(None), i), g)
    build = lambda g, x, i: topi.take_backward(g, x, i, 1)
    check(build, [g, A, i], expected)


def test_wrong_arguments():
    X, I = te.placeholder((4, 5)), te.placeholder((3,), "int64")
    with pytest.raises(ValueError, match="take: expected mode"):
        topi.take(X, I, 0, mode="ring")
    with pytest.raises(TypeError, match="take: expected integers as indices, got float32"):
        topi.take(X, te.placeholder((3,)), 0)
    with pytest.raises(ValueError, match="gather: expected indices with 2 dimensions"):
        topi.gather(X, 0, I)
    with pytest.raises(ValueError, match='scatter_nd: expected "update", "add"'):
        topi.scatter_nd(X, te.placeholder((1, 3), "int64"), te.placeholder((3, 5)), "sub")
