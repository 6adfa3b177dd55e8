# SPDX-License-Identifier: Apache-2.0
"""Removes choices whose outcome T.assume makes the same on both sides."""

import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply


def test_assumption_must_fit_the_value():
    @T.prim_func(private=True)
    def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            T.evaluate(T.assume(i < 14 or A[i] == T.float32(0)))
        for i in range(16):
            B[i] = T.if_then_else(i < 14, A[i] + T.float32(1), T.float32(0))

    tvm.ir.assert_structural_equal(apply(tt.UseAssumeToReduceBranches(), before), before)


def test_assumption_ends_with_a_store():
    @T.prim_func(private=True)
    def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            T.evaluate(T.assume(i < 14 or A[i] == T.float32(0)))
        A[15] = T.float32(3)
        for i in range(16):
            B[i] = T.if_then_else(i < 14, A[i] * T.float32(2), T.float32(0))

    tvm.ir.assert_structural_equal(apply(tt.UseAssumeToReduceBranches(), before), before)
