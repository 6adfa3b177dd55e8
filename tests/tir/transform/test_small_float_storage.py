# SPDX-License-Identifier: Apache-2.0
"""Keeps small floating-point types as integers in memory."""

import pytest
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, func, plain, store


def test_storage_needs_plain_parameters():
    A = buffer((4,), "bfloat16")
    with pytest.raises(ValueError, match="expected a function without buffer_map"):
        apply(tt.BF16StorageLegalize(), func([A], store(A, 0, A[1])))


@pytest.mark.parametrize("make", [tir.Add, tir.LT, lambda a, b: tir.exp(a), tir.Max])
def test_storage_needs_arithmetic_in_wide_types(make):
    """The bits are no numbers: what computes with them would be wrong."""
    A, B = buffer((4,), "float8_e5m2", name="A"), buffer((4,), "float32", name="B")
    value = tir.Cast("float32", make(A[0], A[1]))
    with pytest.raises(
        ValueError,
        match="FP8StorageLegalize: expected no arithmetic of float8_e5m2, run FP8ComputeLegalize",
    ):
        apply(tt.FP8StorageLegalize(), plain(store(B, 0, value), A, B))


def test_calls_take_and_give_bits():
    A = buffer((4,), "bfloat16")
    value = tir.call_pure_extern("bfloat16", "f", A[1])
    after = apply(tt.BF16StorageLegalize(), plain(store(A, 0, value), A))
    assert 'T.call_pure_extern("uint16", "f", ' in after.script()
