# SPDX-License-Identifier: Apache-2.0
"""Computes on small floating-point types in a larger one, rounding after each operation."""

import pytest
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, store


def test_each_operation_is_rounded():
    A, B = buffer((4,), "bfloat16", name="A"), buffer((4,), "bfloat16", name="B")
    wide = lambda e: tir.Cast("float32", e)
    before = func([A, B], loop(4, lambda i: store(B, i, A[i] * A[i] + A[i])))
    product = lambda i: tir.Cast("bfloat16", tir.Mul(wide(A[i]), wide(A[i])))
    expected = func(
        [A, B],
        loop(4, lambda i: store(B, i, tir.Cast("bfloat16", tir.Add(wide(product(i)), wide(A[i]))))),
    )
    check(tt.BF16ComputeLegalize(), before, expected)


def test_what_is_exact_is_not_rounded():
    A, B = buffer((4,), "bfloat16", name="A"), buffer((4,), "bfloat16", name="B")
    wide = lambda e: tir.Cast("float32", e)
    zero = tir.const(0.0, "bfloat16")
    before = func([A, B], loop(4, lambda i: store(B, i, tir.Max(A[i], zero) * A[i])))
    inner = lambda i: tir.Max(wide(A[i]), tir.const(0.0, "float32"))
    expected = func(
        [A, B], loop(4, lambda i: store(B, i, tir.Cast("bfloat16", tir.Mul(inner(i), wide(A[i])))))
    )
    check(tt.BF16ComputeLegalize(), before, expected)


def test_functions_take_the_wide_type():
    A, B = buffer((4,), "bfloat16", name="A"), buffer((4,), "bfloat16", name="B")
    before = func([A, B], loop(4, lambda i: store(B, i, tir.exp(A[i]))))
    wide = lambda i: tir.exp(tir.Cast("float32", A[i]))
    expected = func([A, B], loop(4, lambda i: store(B, i, tir.Cast("bfloat16", wide(i)))))
    check(tt.BF16ComputeLegalize(), before, expected)


def test_promotion_type_of_fp8():
    A = buffer((4,), "float8_e5m2")
    before = func([A], loop(4, lambda i: store(A, i, A[i] + A[i])))
    result = apply(tt.FP8ComputeLegalize("float16"), before)
    assert result.body.body.value.value.dtype == "float16"
    with pytest.raises(
        ValueError, match="expected float16, float32 or float64 as promote_dtype, got int8"
    ):
        apply(tt.FP8ComputeLegalize("int8"), before)
