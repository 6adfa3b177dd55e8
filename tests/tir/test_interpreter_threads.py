# SPDX-License-Identifier: Apache-2.0
"""Threads in the interpreter: barriers, and the order in which they run."""

import numpy as np
import pytest
from tvm.script import tir as T
from tvm.tir import interpret

from tests.tir.programs import floats, transpose


def test_missing_barrier_is_seen_by_the_interpreter():
    @T.prim_func
    def racy(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), scope: T.int32):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([8], "float32", "shared")
        S = T.decl_buffer((8,), data=S_data, scope="shared")
        S[t] = A[t]
        T.tvm_storage_sync("shared")
        S[t] = S[t] + T.float32(1)
        B[t] = S[7 - t]

    A, results = floats(8), []
    for order in ("forward", "backward"):
        B = np.zeros_like(A)
        interpret(racy, order)(A, B, 0)
        results.append(B)
    assert not np.array_equal(*results)


def test_threads_that_miss_a_barrier():
    @T.prim_func
    def diverges(A: T.Buffer((8,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        if t < 4:
            T.tvm_storage_sync("shared")
        A[t] = T.float32(1)

    with pytest.raises(ValueError, match="meet at a barrier"):
        interpret(diverges)(floats(8))


def test_order_of_threads_has_a_name():
    with pytest.raises(ValueError, match="forward, backward, random or lockstep, got 'sideways'"):
        interpret(transpose, threads="sideways")
