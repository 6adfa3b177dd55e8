# SPDX-License-Identifier: Apache-2.0
"""Gives a kernel one variable for each thread index, bound outside of everything."""

import pytest
import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt


def test_unify_needs_one_extent():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32")):
        for b in T.thread_binding(2, "blockIdx.x"):
            for t in T.thread_binding(8, "threadIdx.x"):
                A[t] = T.float32(b)
            for t in T.thread_binding(4, "threadIdx.x"):
                A[t] = T.float32(b)

    with pytest.raises(ValueError, match="one extent of threadIdx.x in a kernel, got 8 and 4"):
        tt.UnifyThreadBinding()(tvm.IRModule({"main": before}))
