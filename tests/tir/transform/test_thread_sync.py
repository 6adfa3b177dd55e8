# SPDX-License-Identifier: Apache-2.0
"""Inserts barriers between accesses of shared memory that belong to different threads."""

import numpy as np
import pytest
import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.fuzz.steps import run
from tests.tir.programs import floats


def barriers(func, scope="shared"):
    mod = tt.ThreadSync(scope)(tvm.IRModule({"main": func}))
    return mod.script().count("tvm_storage_sync"), mod


def test_barrier_inside_of_a_loop():
    @T.prim_func
    def before(A: T.Buffer((3, 8), "float32"), B: T.Buffer((3, 8), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([8], "float32", "shared")
        S = T.decl_buffer((8,), data=S_data, scope="shared")
        for i in range(3):
            S[t] = A[i, t]
            B[i, t] = S[7 - t]

    count, mod = barriers(before)
    assert count == 2, "before reading, and before the next iteration writes"
    A = floats(3, 8)
    for order in ("forward", "backward"):
        got = run(mod, A, np.zeros_like(A), threads=order)[1]
        np.testing.assert_array_equal(got, A[:, ::-1])


def test_no_barrier_for_memory_of_one_thread():
    @T.prim_func
    def before(A: T.Buffer((64,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([64], "float32", "shared")
        S = T.decl_buffer((64,), data=S_data, scope="shared")
        for i in range(8):
            S[t * 8 + i] = A[t * 8 + i]
        for i in range(8):
            A[t * 8 + i] = S[t * 8 + i] + T.float32(1)

    assert barriers(before)[0] == 0


def test_one_barrier_for_padded_rows():
    """Each turn of a cooperative copy writes elements of its own."""

    @T.prim_func
    def before(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([48], "float32", "shared")
        S = T.decl_buffer((48,), data=S_data, scope="shared")
        for i in range(4):
            S[(i * 8 + t) // 4 * 6 + (i * 8 + t) % 4] = A[i * 8 + t]
        for i in range(4):
            B[i * 8 + t] = S[(31 - i * 8 - t) // 4 * 6 + (31 - i * 8 - t) % 4]

    count, mod = barriers(before)
    assert count == 1
    A = floats(32)
    for order in ("forward", "backward"):
        np.testing.assert_array_equal(run(mod, A, np.zeros_like(A), threads=order)[1], A[::-1])


def test_a_barrier_where_rows_overlap():
    @T.prim_func
    def before(A: T.Buffer((32,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([48], "float32", "shared")
        S = T.decl_buffer((48,), data=S_data, scope="shared")
        for i in range(4):
            S[(i * 8 + t) // 4 * 3 + (i * 8 + t) % 4] = A[i * 8 + t]

    assert barriers(before)[0] == 1


def test_no_barrier_where_there_are_those_that_are_needed():
    @T.prim_func(private=True)
    def reverse(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        i = T.launch_thread("threadIdx.x", 32)
        S_data = T.allocate([32], "float32", "shared")
        S = T.decl_buffer((32,), data=S_data, scope="shared")
        with T.attr(0, "own_barriers", 1):
            S[i] = A[i]
            T.tvm_storage_sync("shared")
            B[i] = S[31 - i]
            S[31 - i] = A[i]

    mod = tvm.IRModule({"main": reverse})
    tvm.ir.assert_structural_equal(tt.ThreadSync("shared")(mod), mod)


def test_no_barrier_for_disjoint_halves():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([16], "float32", "shared")
        S = T.decl_buffer((16,), data=S_data, scope="shared")
        S[t] = A[t]
        S[15 - t] = A[t]

    assert barriers(before)[0] == 0


def test_barrier_under_a_condition_of_all_threads():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), n: T.int32):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([8], "float32", "shared")
        S = T.decl_buffer((8,), data=S_data, scope="shared")
        if n > 3:
            S[t] = A[t]
            A[t] = S[7 - t]

    assert barriers(before)[0] == 1


def test_barrier_under_a_condition_of_some_threads_is_an_error():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([8], "float32", "shared")
        S = T.decl_buffer((8,), data=S_data, scope="shared")
        if t < 4:
            S[t] = A[t]
            A[t] = S[3 - t]

    with pytest.raises(ValueError, match="conditions that depend on the thread"):
        barriers(before)
