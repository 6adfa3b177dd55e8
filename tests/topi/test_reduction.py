# SPDX-License-Identifier: Apache-2.0
"""Operators that combine elements along axes."""

import numpy as np
import pytest
from tvm import te, topi

from .checking import blocks, check, compiled, values

REDUCTIONS = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "variance": np.var,
    "std": np.std,
}
AXES = [None, 0, -1, (0, 2), (1,), [2, 0, 1]]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name, keepdims):
    op, reference = getattr(topi, name), REDUCTIONS[name]
    a = values(5, 6, 7)
    for axis in AXES:
        numpy_axis = tuple(axis) if isinstance(axis, list) else axis
        expected = reference(a, axis=numpy_axis, keepdims=keepdims)
        check(lambda x, axis=axis: op(x, axis, keepdims), [a], expected, rtol=1e-4, atol=1e-4)
    check(
        lambda x: op(x, 1, keepdims),
        [a],
        reference(a, axis=1, keepdims=keepdims),
        symbolic=True,
        rtol=1e-4,
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sums_of_many_small_floats(dtype):
    """A sum in their own type would stand still: at 256 of bfloat16."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    t = np.dtype(getattr(ml_dtypes, dtype, dtype))
    a = values(4, 3000, low=0.5, high=1).astype(t)
    wide, tolerance = a.astype("float64"), {"rtol": 8e-3, "atol": 8e-3}
    for name in ("sum", "mean", "variance", "std"):
        expected = REDUCTIONS[name](wide, axis=1).astype(t)
        check(lambda x, name=name: getattr(topi, name)(x, 1), [a], expected, **tolerance)
    check(
        lambda x: topi.collapse_sum(x, (4, 1)), [a], wide.sum(1, keepdims=True).astype(t), rtol=8e-3
    )
    check(lambda x: topi.cumsum(x, 1), [a], wide.cumsum(1).astype(t), rtol=8e-3)
    ratios = 1 + a[:, :200] / t.type(100)
    check(
        lambda x: topi.prod(x, 1), [ratios], ratios.astype("float64").prod(1).astype(t), rtol=8e-3
    )
    logs = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    check(topi.nn.log_softmax, [a], logs.astype(t), **tolerance)
    image = a.reshape(1, 4, 50, 60)
    mean = image.astype("float64").mean((2, 3), keepdims=True).astype(t)
    pads = (0, 0, 0, 0)
    pools = [
        lambda x: topi.nn.global_pool(x, "avg"),
        lambda x: topi.nn.pool2d(x, (50, 60), (1, 1), (1, 1), pads, "avg"),
    ]
    for pool in pools:
        check(pool, [image], mean, **tolerance)


def test_sums_of_nothing():
    check(lambda x: topi.sum(x, 1), [values(3, 0)], np.zeros(3, "float32"))
    check(lambda x: topi.prod(x, 1), [values(3, 0)], np.ones(3, "float32"))
    check(lambda x: topi.sum(x, 0), [values(3, 0)], np.zeros(0, "float32"))


def test_all_and_any():
    a = values(6, 5, dtype="bool")
    check(lambda x: topi.all(x, 1), [a], a.all(1))
    check(lambda x: topi.any(x, 0, True), [a], a.any(0, keepdims=True))
    check(topi.any, [a], a.any())


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_arguments_of_extremes(dtype):
    a = values(7, 33, dtype=dtype, low=0, high=9)  # with ties for the integers
    for op, reference in ((topi.argmax, np.argmax), (topi.argmin, np.argmin)):
        for axis in (0, 1, None):
            expected = reference(a, axis).astype("int32")
            check(lambda x, op=op, axis=axis: op(x, axis), [a], expected)
        check(lambda x, op=op: op(x, 1, True, False, "int64"), [a], reference(a, 1, keepdims=True))
        last = 32 - reference(a[:, ::-1], 1)
        check(lambda x, op=op: op(x, 1, False, True), [a], last.astype("int32"))
        check(lambda x, op=op: op(x, 1), [a], reference(a, 1).astype("int32"), symbolic=True)


def test_special_values():
    inf, nan = np.inf, np.nan
    a = np.array([[-inf] * 3, [inf] * 3, [1, nan, 2], [nan, inf, nan], [-inf, -1, -inf]], "float32")
    check(lambda x: topi.max(x, 1), [a], a.max(1))
    check(lambda x: topi.min(x, 1), [a], a.min(1))
    check(lambda x: topi.argmax(x, 1), [a], a.argmax(1).astype("int32"))
    check(lambda x: topi.argmin(x, 1), [a], a.argmin(1).astype("int32"))
    low = np.full((2, 300), -inf, "float32")
    check(lambda x: topi.max(x, 1), [low], low.max(1))
    check(lambda x: topi.argmax(x, 1), [low], low.argmax(1).astype("int32"))


def test_collapse_sum():
    a = values(4, 5, 6)
    check(lambda x: topi.collapse_sum(x, (5, 6)), [a], a.sum(0), rtol=1e-4)
    check(lambda x: topi.collapse_sum(x, (1, 6)), [a], a.sum((0, 1))[None], rtol=1e-4)
    check(lambda x: topi.collapse_sum(x, (4, 5, 6)), [a], a)
    with pytest.raises(ValueError, match="collapse_sum: expected"):
        topi.collapse_sum(te.placeholder((4, 5)), (3, 5))


def test_blocks():
    one = lambda op: blocks(compiled(op, [values(3, 4)]).func)
    assert one(lambda x: topi.sum(x, 1)) == ["A0_red"]
    assert one(lambda x: topi.argmax(x, 1)) == ["A0_red_temp", "A0_red"]
    assert one(lambda x: topi.mean(x, 1)) == ["A0_red", "T_divide"]
    deviations = ["A0_red", "T_divide", "T_subtract", "T_multiply", "T_multiply_red", "T_divide_1"]
    assert one(lambda x: topi.variance(x, 1)) == deviations
    assert one(lambda x: topi.std(x, 1)) == [*deviations, "compute"]


def test_axes_that_are_none():
    A = te.placeholder((4, 5))
    with pytest.raises(ValueError, match="sum: expected an axis from -2 to 1, got 2"):
        topi.sum(A, 2)
    with pytest.raises(ValueError, match="max: expected every axis once, got axis 1 twice"):
        topi.max(A, (1, -1))
