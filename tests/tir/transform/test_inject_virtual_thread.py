# SPDX-License-Identifier: Apache-2.0
"""Runs virtual threads in turn, statement by statement."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.fuzz.steps import run
from tests.tir.programs import floats


def test_virtual_threads():
    @T.prim_func
    def before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for v in T.thread_binding(2, "vthread"):
            for t in T.thread_binding(8, "threadIdx.x"):
                with T.block(""):
                    T.reads(A[0:64])
                    T.writes(B[0:64])
                    L = T.alloc_buffer((4,), scope="local")
                    for i in range(4):
                        L[i] = A[v * 32 + t * 4 + i]
                    if v == 1:
                        L[0] = T.float32(5)
                    for i in range(4):
                        B[v * 32 + t * 4 + i] = L[3 - i]

    A = floats(64)
    expected = run(before, A, np.zeros_like(A))[1]
    mod = tvm.IRModule({"main": before})
    for step in (tt.LowerOpaqueBlock(), tt.FlattenBuffer(), tt.InjectVirtualThread()):
        mod = step(mod)
        np.testing.assert_array_equal(run(mod, A, np.zeros_like(A))[1], expected)
    assert "virtual_thread" not in mod.script() and "vthread" not in mod.script()


@pytest.mark.parametrize("few", [1, 3, 8])
def test_a_function_that_some_threads_call_changes_their_piece(few):
    """It gets a pointer, and nothing but the condition around it depends on the thread."""

    @tvm.register_global_func("test.virtual_thread.add", override=True)
    def add(tensor):
        np.from_dlpack(tensor)[...] += np.int32(1)
        return 0

    @T.prim_func
    def before(R: T.Buffer((8,), "int32")):
        v = T.int32()
        with T.attr(T.iter_var(v, (0, 8), "ThreadIndex", "vthread"), "virtual_thread", 8):
            own_data = T.allocate([2], "int32", "global")
            own = T.decl_buffer((2,), "int32", data=own_data)
            own[0] = 3
            own[1] = 4
            if v < few:
                T.evaluate(
                    T.tvm_call_packed(
                        "test.virtual_thread.add",
                        T.tvm_stack_make_array(own_data, T.tvm_stack_make_shape(2), 0, 1, 0, 0),
                    )
                )
            R[v] = own[0] + own[1]

    expected = np.where(np.arange(8) < few, 9, 7)
    R = np.zeros(8, "int32")
    tvm.tir.interpret(tt.InjectVirtualThread()(tvm.IRModule({"main": before})))(R)
    np.testing.assert_array_equal(R, expected)
    R[:] = 0
    tvm.compile(before, target=tvm.testing.host_target())(R)
    np.testing.assert_array_equal(R, expected)
