# SPDX-License-Identifier: Apache-2.0
"""Stores of some lanes of a vector leave what is next to them alone."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T


@pytest.mark.parametrize("lanes", [1, 2, 3, 7, 15])
@pytest.mark.parametrize("dtype", ["int8", "int16", "float16", "int32"])
@pytest.mark.parametrize("cpu", ["", " -mcpu=x86-64", " -mcpu=x86-64-v3"])
def test_truncated_values(dtype, lanes, cpu):
    @T.prim_func
    def func(A: T.Buffer((16,), "int32"), B: T.Buffer((32,), dtype)):
        mask = T.get_active_lane_mask("uint1x16", 0, lanes)
        B.vstore([T.Ramp(8, 1, 16)], T.Cast(f"{dtype}x16", A[0:16]), predicate=mask)

    a = np.random.default_rng(0).integers(-(2**31), 2**31, 16).astype("int32")
    b = tvm.runtime.tensor(np.full(32, 7, dtype))
    tvm.build(func, target="llvm" + cpu)(tvm.runtime.tensor(a), b)
    expected = np.full(32, 7, dtype)
    tir.interpret(func)(a, expected)
    np.testing.assert_array_equal(b.numpy(), expected)
    assert (np.delete(b.numpy(), range(8, 8 + lanes)) == 7).all()
