# SPDX-License-Identifier: Apache-2.0
"""Sorting, running sums, places in sorted sequences."""

import numpy as np
import pytest
from tvm import te, tir, topi

from .checking import check, values

A = values(3, 7, 5, low=-4, high=4).round()  # with ties
SPECIAL = np.array([[3, np.nan, -np.inf, 1, np.inf, np.nan, -0.0, 0.0, 2]], "float32")


def by(a, axis, descending=False):
    """Stable, NaN last."""
    keys = np.where(np.isnan(a), np.inf, -a if descending else a)
    return np.lexsort((keys, np.isnan(a)), axis=axis)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("ascending", [True, False])
def test_sort(axis, ascending):
    order = by(A, axis, not ascending)
    expected = np.take_along_axis(A, order, axis)
    check(lambda x: topi.sort(x, axis, ascending), [A], expected)
    check(lambda x: topi.argsort(x, None, axis, ascending, "int64"), [A], order)
    check(lambda x: topi.sort(x, axis, ascending), [A], expected, symbolic=True)


def test_sort_of_special_values_and_sizes():
    for ascending in (True, False):
        order = by(SPECIAL, -1, not ascending)
        check(
            lambda x, a=ascending: topi.argsort(x, None, -1, a, "int32"),
            [SPECIAL],
            order.astype("int32"),
        )
    for n in (0, 1, 2, 33, 1000):
        a = values(2, n, seed=n)
        check(topi.sort, [a], np.sort(a, -1))
    b = values(50, dtype="int32", low=-9, high=9)
    check(topi.sort, [b], np.sort(b))


def test_argsort_of_some():
    count = np.array([3, 0, 7], "int32")
    a = A[:, :, 0].copy()
    expected = np.stack(
        [np.concatenate([by(r[:n], -1), np.arange(n, 7)]) for r, n in zip(a, count, strict=True)]
    )
    check(lambda x, n: topi.argsort(x, n, 1, True, "int32"), [a, count], expected.astype("int32"))


@pytest.mark.parametrize("k", [1, 3, 0])
def test_topk(k):
    order = by(A, 1, True)[:, : k or None]
    largest = np.take_along_axis(A, order, 1)
    check(lambda x: topi.topk(x, k, 1), [A], [largest, order])
    check(lambda x: topi.topk(x, k, 1, "values"), [A], largest)
    check(lambda x: topi.topk(x, k, 1, "indices", False, "int32"), [A], order.astype("int32"))
    smallest = np.take_along_axis(A, by(A, 1)[:, : k or None], 1)
    check(lambda x: topi.topk(x, k, 1, "values", True), [A], smallest)


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_topk_of_few_among_many(ascending, axis):
    """Ties, NaN and infinities, rows in order and in the opposite one."""
    rows = [values(400, low=-9, high=9).round(), np.arange(400.0), -np.arange(400.0)]
    rows += [np.zeros(400), np.resize(SPECIAL, 400)]
    a = np.stack(rows).astype("float32")
    order = by(a, -1, not ascending)
    a, order = (a, order) if axis else (a.T.copy(), order.T)
    for k in (1, 2, 7, 64, 200, 201):
        first = order[:, :k] if axis else order[:k]
        expected = [np.take_along_axis(a, first, axis), first]
        check(lambda x, k=k: topi.topk(x, k, axis, "both", ascending), [a], expected)


def test_median():
    a = np.concatenate([values(4, 6), SPECIAL[:, :6], SPECIAL[:, 2:5].repeat(2, 1)])
    import torch

    expected, index = (t.numpy() for t in torch.median(torch.from_numpy(a), 1))
    got = np.take_along_axis(a, index[:, None], 1)[:, 0]
    np.testing.assert_array_equal(got, expected)
    check(lambda x: topi.median(x, 1)[0], [a], expected)
    check(lambda x: topi.median(x, 1, True), [a[:4]], [expected[:4, None], index[:4, None]])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("exclusive", [False, True])
def test_running(axis, exclusive):
    for op, reference, start in ((topi.cumsum, np.cumsum, 0), (topi.cumprod, np.cumprod, 1)):
        expected = reference(A, axis)
        if exclusive:
            at = 0 if axis is None else axis
            moved = np.roll(expected, 1, at)
            index = [slice(None)] * moved.ndim
            index[at] = 0
            moved[tuple(index)] = start
            expected = moved
        check(lambda x, op=op: op(x, axis, None, exclusive), [A], expected)
    b = values(40, dtype="int8", low=0, high=100)
    check(lambda x: topi.cumsum(x, 0, "int64"), [b], np.cumsum(b, dtype="int64"))
    check(
        lambda x: topi.scanop(x, tir.max, tir.min_value("float32"), "running_max", 1),
        [A],
        np.maximum.accumulate(A, 1),
    )


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(right):
    rows = np.sort(values(4, 9).round(), -1)
    v = values(4, 6, seed=1).round()
    v[0, 0], rows[1, -1] = np.nan, np.nan
    side = "right" if right else "left"
    expected = np.stack([np.searchsorted(r, x, side) for r, x in zip(rows, v, strict=True)])
    check(lambda s, x: topi.searchsorted(s, x, right), [rows, v], expected)
    expected = np.searchsorted(rows[0], v, side).astype("int32")
    check(lambda s, x: topi.searchsorted(s, x, right, "int32"), [rows[0].copy(), v], expected)


def test_multinomial():
    p = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]], "float32")
    u = np.array([[0.1], [0.45], [0.99], [0.5], [0.0]], "float32")
    rows = np.array([[0], [0], [0], [1], [1]], "int64")
    expected = np.array([[0], [1], [2], [1], [1]])
    check(topi.multinomial_from_uniform, [p, u, rows], expected)


def test_wrong_arguments():
    X = te.placeholder((4, 5))
    with pytest.raises(ValueError, match="topk: expected k of at most 5, got 6"):
        topi.topk(X, 6)
    with pytest.raises(ValueError, match="topk: expected ret_type"):
        topi.topk(X, 1, ret_type="all")
    with pytest.raises(ValueError, match="searchsorted: expected values for every sequence"):
        topi.searchsorted(X, te.placeholder((3, 5)))
