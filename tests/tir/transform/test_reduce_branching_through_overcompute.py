# SPDX-License-Identifier: Apache-2.0
"""Removes branches by computing more than is needed."""

import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply


def test_overcompute_stays_inside_of_buffers():
    @T.prim_func(private=True)
    def before(A: T.Buffer((14,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            if i < 14:
                B[i] = A[i]
            else:
                B[i] = T.call_intrin("float32", "tir.undef")

    after = apply(tt.ReduceBranchingThroughOvercompute(), before)
    tvm.ir.assert_structural_equal(after, before)


def test_memory_that_nobody_wrote_holds_anything():
    @T.prim_func(private=True)
    def before(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        S = T.alloc_buffer((16,), "int32")
        for i in range(16):
            if i < 14:
                S[i] = A[i]
        for i in range(14):
            B[i] = S[i]

    @T.prim_func(private=True)
    def expected(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        S = T.alloc_buffer((16,), "int32")
        for i in range(16):
            S[i] = A[i]
        for i in range(14):
            B[i] = S[i]

    after = apply(tt.ReduceBranchingThroughOvercompute(use_dataflow_analysis=True), before)
    tvm.ir.assert_structural_equal(after, expected)
    after = apply(tt.ReduceBranchingThroughOvercompute(), before)
    tvm.ir.assert_structural_equal(after, before)


def test_branches_that_store_to_two_buffers_stay():
    @T.prim_func(private=True)
    def before(B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
        for i in range(16):
            if i < 14:
                B[i] = 0
            else:
                C[i] = 0

    after = apply(tt.ReduceBranchingThroughOvercompute(), before)
    tvm.ir.assert_structural_equal(after, before)
