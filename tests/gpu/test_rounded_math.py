# SPDX-License-Identifier: Apache-2.0
"""Functions of float16 and bfloat16, of all their values, against float64."""

import math

import ml_dtypes
import numpy as np
import pytest
from tvm import te, tir

from tests.gpu.test_kernels import run


def gelu(x):
    x = x.astype("float32")
    return x * 0.5 * (1.0 + tir.erf(x * math.sqrt(0.5)))


EXPECTED = {
    tir.exp: np.exp,
    tir.sigmoid: lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))),
    tir.tanh: np.tanh,
    gelu: np.vectorize(lambda x: x * 0.5 * math.erfc(-x * math.sqrt(0.5))),
}


@pytest.mark.parametrize("function", EXPECTED)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_all_values(function, dtype):
    numpy = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.arange(1 << 16, dtype="uint16").view(numpy)
    A = te.placeholder(x.shape, dtype, name="A")
    B = te.compute(x.shape, lambda i: function(A[i]).astype(dtype), name="B")
    got = run(te.create_prim_func([A, B]), x, np.full_like(x, 77))
    with np.errstate(all="ignore"):
        want = EXPECTED[function](x.astype("float64"))
        rounded = want.astype(numpy)
        bad = np.isnan(got) != np.isnan(rounded)
        assert not bad.any() or (function is gelu and np.isinf(x[bad].astype("float64")).all())
        finite = np.isfinite(rounded.astype("float64")) & np.isfinite(got.astype("float64"))
        np.testing.assert_array_equal(np.isinf(got), np.isinf(rounded))
        ulp = np.spacing(np.abs(rounded[finite])).astype("float64")
        error = np.abs(got[finite].astype("float64") - want[finite]) / ulp
    assert error.max() <= (1 if function is tir.tanh and dtype == "bfloat16" else 0.75)
