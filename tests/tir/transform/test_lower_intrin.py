# SPDX-License-Identifier: Apache-2.0
"""Expands intrinsics into what the target's code generator knows."""

import numpy as np
import pytest
import tvm
from tvm.script import tir as T
from tvm.testing.features import host_target


def test_lower_intrin_fixed_point():
    """Fixed-point multiplication as 64-bit arithmetic gives what the operator means."""

    @T.prim_func
    def before(A: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
        for i in range(6):
            B[i] = T.q_multiply_shift(A[i], 1395864371, 31, 1 - i)
            C[i] = T.q_multiply_shift_per_axis(A[i], 1395864371, i, 2, 31, i % 2, 1)

    func = before.with_attr("target", tvm.target.Target("c"))
    after = tvm.tir.transform.LowerIntrin()(tvm.IRModule({"main": func}))["main"]
    assert "q_multiply" not in after.script()
    results = []
    for one in (before, after):
        a = np.array([0, 1, -7, 12345, -30000, 2**26 - 1], "int32")
        b, c = np.zeros(6, "int32"), np.zeros(6, "int32")
        tvm.tir.interpret(one)(a, b, c)
        results.append((b, c))
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nextafter(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(getattr(ml_dtypes, dtype) if dtype == "bfloat16" else dtype)
    some = [0.0, -0.0, 1.0, -1.0, 1e-7, 65504.0, -3.5, np.inf, -np.inf, np.nan]
    x, y = (np.array(v, kind) for v in zip(*[(a, b) for a in some for b in some], strict=True))
    n = len(x)

    @T.prim_func
    def func(X: T.Buffer((n,), dtype), Y: T.Buffer((n,), dtype), Z: T.Buffer((n,), dtype)):
        for i in range(n):
            Z[i] = T.nextafter(X[i], Y[i])

    args = [tvm.runtime.tensor(a) for a in (x, y, np.zeros(n, kind))]
    tvm.compile(func, target=host_target())(*args)
    got, expected = args[2].numpy().astype("float64"), np.nextafter(x, y).astype("float64")
    np.testing.assert_array_equal(got, expected)
    if dtype != "float16":  # where NumPy gives the first of two equal zeros, not the second
        signs = np.signbit(got), np.signbit(expected)
        np.testing.assert_array_equal(*(s[expected == 0] for s in signs))
