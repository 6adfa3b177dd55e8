# SPDX-License-Identifier: Apache-2.0
"""Memory of a warp lives in the registers of its threads."""

import numpy as np
import pytest
import tvm
from tvm.script import tir as T
from tvm.tir import interpret
from tvm.tir import transform as tt

from tests.tir.programs import floats


def test_warp_memory_must_be_written_by_its_thread():
    @T.prim_func
    def before(A: T.Buffer((32,), "float32")):
        T.func_attr({"target": T.target("cuda")})
        t = T.launch_thread("threadIdx.x", 32)
        W_data = T.allocate([32], "float32", "warp")
        W = T.decl_buffer((32,), data=W_data, scope="warp")
        W[t * t] = A[t]
        A[t] = W[t]

    with pytest.raises(ValueError, match="LowerWarpMemory: expected warp memory"):
        tt.LowerWarpMemory()(tvm.IRModule({"main": before}))


def test_warp_memory_runs():
    @T.prim_func
    def before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.func_attr({"target": T.target({"kind": "cuda", "thread_warp_size": 8})})
        t = T.launch_thread("threadIdx.x", 16)
        W_data = T.allocate([32], "float32", "warp")
        W = T.decl_buffer((32,), data=W_data, scope="warp")
        for i in range(4):
            W[(t % 8) * 4 + i] = A[t * 4 + i]
        for i in range(4):
            B[t * 4 + i] = W[((t + 3) % 8) * 4 + i]

    mod = tt.LowerWarpMemory()(tvm.IRModule({"main": before}))
    A, B, C = floats(64), np.zeros(64, "float32"), np.zeros(64, "float32")
    interpret(mod)(A, B)
    lanes = A.reshape(2, 8, 4)
    np.testing.assert_array_equal(B.reshape(2, 8, 4), np.roll(lanes, -3, 1))
    interpret(tvm.IRModule({"main": before}), threads="lockstep")(A, C)
    np.testing.assert_array_equal(C, B)


def test_warp_memory_at_an_index_with_a_name():
    """As CommonSubexprElimTIR leaves it."""

    @T.prim_func
    def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        T.func_attr({"target": T.target({"kind": "cuda", "thread_warp_size": 8})})
        t = T.launch_thread("threadIdx.x", 8)
        W_data = T.allocate([16], "float32", "warp")
        W = T.decl_buffer((16,), data=W_data, scope="warp")
        first: T.int32 = t * 2
        for i in range(2):
            W[first + i] = A[first + i]
        for i in range(2):
            B[first + i] = W[((t + 3) % 8) * 2 + i]

    mod = tt.LowerWarpMemory()(tvm.IRModule({"main": before}))
    A, B = floats(16), np.zeros(16, "float32")
    interpret(mod)(A, B)
    np.testing.assert_array_equal(B.reshape(8, 2), np.roll(A.reshape(8, 2), -3, 0))


def test_warp_memory_read_by_some_threads():
    """The threads that are asked must answer."""

    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.func_attr({"target": T.target({"kind": "cuda", "thread_warp_size": 8})})
        t = T.launch_thread("threadIdx.x", 8)
        W_data = T.allocate([8], "float32", "warp")
        W = T.decl_buffer((8,), data=W_data, scope="warp")
        W[t] = A[t]
        if t < 4:
            B[t] = W[(t + 4) % 8]

    with pytest.raises(ValueError, match="to be read by all threads of a warp, got a read in a"):
        tt.LowerWarpMemory()(tvm.IRModule({"main": before}))
