# SPDX-License-Identifier: Apache-2.0
"""Copies between memories that all threads see are shared out among the threads of a kernel."""

import numpy as np
import pytest
import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.fuzz.steps import run
from tests.tir.programs import floats


def test_auto_copy_is_shared_out():
    @T.prim_func
    def before(A: T.Buffer((3, 5), "float32"), B: T.Buffer((3, 5), "float32")):
        S = T.alloc_buffer((3, 5), scope="shared")
        for t in T.thread_binding(4, "threadIdx.x"):
            with T.block("copy"):
                T.reads(A[0:3, 0:5])
                T.writes(S[0:3, 0:5])
                T.block_attr({"auto_copy": 1, "vector_bytes": 16})
                for i, j in T.grid(3, 5):
                    S[i, j] = A[i, j]
            for i, j in T.grid(3, 5):
                if t == 0:
                    B[i, j] = S[2 - i, 4 - j]

    A = floats(3, 5)
    mod = tt.LowerAutoCopy()(tvm.IRModule({"main": before}))
    assert "copy * 4 + t" in mod.script() and "vectorized" not in mod.script(), (
        "rows of 5: no vectors"
    )
    got = run(tt.UnifyThreadBinding()(mod), A, np.zeros_like(A), threads="lockstep")[1]
    np.testing.assert_array_equal(got, A[::-1, ::-1])


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_vectors_of_each_length(lanes):
    @T.prim_func
    def before(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
        S = T.alloc_buffer((4, 8), scope="shared")
        for t in T.thread_binding(4, "threadIdx.x"):
            with T.block("copy"):
                T.reads(A[0:4, 0:8])
                T.writes(S[0:4, 0:8])
                T.block_attr({"auto_copy": 1, "vector_bytes": lanes * 4})
                for i, j in T.grid(4, 8):
                    S[i, j] = A[i, j]
            for i, j in T.grid(4, 8):
                if t == 0:
                    B[i, j] = S[i, j]

    A = floats(4, 8)
    mod = tt.LowerAutoCopy()(tvm.IRModule({"main": before}))
    assert ("vectorized" in mod.script()) == (lanes > 1)
    got = run(tt.UnifyThreadBinding()(mod), A, np.zeros_like(A), threads="lockstep")[1]
    np.testing.assert_array_equal(got, A)


@pytest.mark.parametrize("iterators", [True, False])
def test_auto_copy_errors(iterators):
    @T.prim_func
    def without(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                T.block_attr({"auto_copy": 1})
                A[i] = A[i] + T.float32(1)

    @T.prim_func
    def with_iterators(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                v = T.axis.spatial(4, i)
                T.block_attr({"auto_copy": 1})
                A[v] = A[v] + T.float32(1)

    before = with_iterators if iterators else without
    message = "run ConvertBlocksToOpaque first" if iterators else "copies from other buffers"
    with pytest.raises(ValueError, match=message):
        tt.LowerAutoCopy()(tvm.IRModule({"main": before}))
