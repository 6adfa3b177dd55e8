# SPDX-License-Identifier: Apache-2.0
"""Copies to shared memory go through registers."""

import numpy as np
from tvm.script import tir as T

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
