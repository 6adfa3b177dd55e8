# SPDX-License-Identifier: Apache-2.0
"""Runs virtual threads in turn, statement by statement."""

import numpy as np
import tvm
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
