# SPDX-License-Identifier: Apache-2.0
"""Makes every 64-bit index 32 bits wide, whatever its bounds."""

import numpy as np
import pytest
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, store


def test_force_narrow_index_to_int32():
    A = buffer((tir.const(64, "int64"),))
    n = tir.Var("n", "int64")
    before = func(
        [A, n], loop(n, lambda i: store(A, i * tir.const(2, "int64"), 1.0), dtype="int64")
    )
    B, m = buffer((64,)), tir.Var("n", "int32")
    check(
        tt.ForceNarrowIndexToInt32(), before, func([B, m], loop(m, lambda i: store(B, i * 2, 1.0)))
    )
    with pytest.raises(ValueError, match="expected no buffer of int64, got D"):
        D = buffer((4,), "int64", name="D")
        apply(tt.ForceNarrowIndexToInt32(), func([D], store(D, 0, 1)))


@pytest.mark.parametrize("value", [2**31 - 1, -(2**31), 2**31, -(2**31) - 1])
def test_constants_that_fit_are_narrowed(value):
    A = buffer((4,), "int32")
    index = tir.FloorMod(tir.IntImm("int64", value), tir.IntImm("int64", 4))
    before = func([A], store(A, index, 1))
    if not -(2**31) <= value < 2**31:
        with pytest.raises(ValueError, match=f"expected constants that fit int32, got {value}"):
            apply(tt.ForceNarrowIndexToInt32(), before)
        return
    after = apply(tt.ForceNarrowIndexToInt32(), before).body.indices[0]
    assert after.dtype == "int32" and after.a.value == value


@pytest.mark.parametrize("start", [1, -3])
@pytest.mark.parametrize("op", [tir.clz, tir.popcount])
def test_functions_of_all_bits_keep_their_value(op, start):
    B = tir.decl_buffer((8,), "int32", name="B")
    i = tir.Var("i", "int64")
    value = tir.Cast("int32", op(i + tir.const(start, "int64")))
    body = tir.For(i, tir.const(0, "int64"), tir.const(8, "int64"), tir.ForKind.SERIAL,
                   tir.BufferStore(B, value, [i]))  # fmt: skip
    func = tir.PrimFunc([B], body)
    expected, got = np.zeros(8, "int32"), np.zeros(8, "int32")
    tir.interpret(func)(expected)
    tir.interpret(apply(tt.ForceNarrowIndexToInt32(), func))(got)
    np.testing.assert_array_equal(got, expected)
    if op is tir.clz and start == 1:
        np.testing.assert_array_equal(expected, 63 - np.log2(np.arange(1, 9)).astype("int32"))
