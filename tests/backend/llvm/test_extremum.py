# SPDX-License-Identifier: Apache-2.0
"""The largest and smallest of many numbers, NaN and infinities among them"""

import numpy as np
import pytest
import tvm
from tvm import te
from tvm.script import tir as T

SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 3.0e38, -3.0e38]
REDUCE = {"max": (te.max, np.max), "min": (te.min, np.min)}


def kernel(name, dtype, columns):
    n = te.size_var("n")
    a = te.placeholder((n, columns), dtype, name="A")
    k = te.reduce_axis((0, columns), "k")
    out = te.compute((n,), lambda i: REDUCE[name][0](a[i, k], k), "B")
    return tvm.compile(te.create_prim_func([a, out]), target="llvm")


@pytest.mark.parametrize("name", REDUCE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [63, 64, 200, 1024])
def test_special_values(name, dtype, columns):
    rng = np.random.default_rng(columns)
    rows = 200
    x = rng.standard_normal((rows, columns)).astype(dtype)
    for row in range(8, rows):  # the first ones have only ordinary numbers
        count = rng.integers(1, 4)
        x[row, rng.integers(0, columns, count)] = rng.choice(SPECIAL, count)
    x[8] = np.inf
    x[9] = -np.inf
    x[10] = np.nan
    got = np.zeros(rows, dtype)
    kernel(name, dtype, columns)(x, got)
    np.testing.assert_array_equal(got, REDUCE[name][1](x, axis=1))


def test_only_a_nan_runs_the_loop_again():
    text = kernel("max", "float32", 1024).mod.inspect_source("ll")
    assert "extremum" in text and "llvm.maximum" in text
    few = kernel("max", "float32", 32).mod.inspect_source("ll")
    assert "extremum" not in few


def test_the_result_so_far_counts():
    """Also where there is nothing to compare it to."""

    @T.prim_func
    def func(a: T.handle, B: T.Buffer((1,), "float32")):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        for i in range(n):
            B[0] = T.max(A[i] * 2.0, B[0])

    with tvm.transform.PassContext(config={"tir.default_schedule": False}):
        run = tvm.compile(func, target="llvm")
    for values, start, expected in [
        ([], 5.0, 5.0), ([], np.nan, np.nan), ([1.0, 2.0], np.nan, np.nan), ([1.0, 4.0], 5.0, 8.0),
        ([1.0, 2.0], 5.0, 5.0), ([np.nan, 1.0], 5.0, np.nan), ([np.inf, -np.inf], 5.0, np.inf),
    ]:  # fmt: skip
        result = np.array([start], "float32")
        run(np.array(values, "float32"), result)
        np.testing.assert_array_equal(result, np.array([expected], "float32"))
