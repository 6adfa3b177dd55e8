# SPDX-License-Identifier: Apache-2.0
"""Copies to shared memory go through registers."""

import numpy as np
import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.fuzz.steps import check_every_step, run
from tests.tir.programs import floats


def test_local_stage_of_a_block_without_iterators():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        S = T.alloc_buffer((8,), scope="shared")
        for t in T.thread_binding(2, "threadIdx.x"):
            for j in range(4):
                with T.block("S"):
                    v = T.axis.spatial(8, t * 4 + j)
                    T.block_attr({"tir.manifest_shared_memory_local_stage": 1})
                    S[v] = A[v]
        for t in T.thread_binding(2, "threadIdx.x"):
            for j in range(4):
                with T.block("B"):
                    v = T.axis.spatial(8, t * 4 + j)
                    B[v] = S[7 - v]

    A = floats(8)
    mod = check_every_step(before, [A, np.zeros_like(A)])
    np.testing.assert_array_equal(run(mod, A, np.zeros_like(A))[1], A[::-1])


def test_the_stages_of_a_block_with_iterators_have_them():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        S = T.alloc_buffer((8,), scope="shared")
        for j in range(8):
            with T.block("S"):
                v = T.axis.spatial(8, j)
                T.block_attr({"tir.manifest_shared_memory_local_stage": 1})
                S[7 - v] = A[v]
        for j in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, j)
                B[v] = S[v]

    A = floats(8)
    mod = tt.ManifestSharedMemoryLocalStage()(tvm.IRModule({"main": before}))
    assert "local" in mod.script()
    np.testing.assert_array_equal(run(mod, A, np.zeros_like(A))[1], A[::-1])
