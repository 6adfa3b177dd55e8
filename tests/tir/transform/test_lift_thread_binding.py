# SPDX-License-Identifier: Apache-2.0
"""Loops over one thread index, of which a kernel has several, become one around all of them."""

import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt


def test_kernels_one_after_the_other_stay_apart():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for t in T.thread_binding(8, "threadIdx.x"):
            A[t] = T.float32(1)
        for t in T.thread_binding(4, "threadIdx.x"):
            B[t] = A[t]

    mod = tvm.IRModule({"main": before})
    tvm.ir.assert_structural_equal(tt.LiftThreadBinding()(mod), mod)
    tvm.ir.assert_structural_equal(tt.UnifyThreadBinding()(mod), mod)
