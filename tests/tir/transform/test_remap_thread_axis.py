# SPDX-License-Identifier: Apache-2.0
"""Launches kernels with other thread indices."""

import numpy as np
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import interpret
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply


def index(tag, name):
    return tir.IterVar(None, tir.Var(name, "int32"), tir.IterVar.ThreadIndex, tag)


def test_two_indices_change_places():
    @T.prim_func
    def before(A: T.Buffer((2, 8), "int32")):
        T.func_attr({"tir.kernel_launch_params": ["threadIdx.x", "threadIdx.y"]})
        x = T.launch_thread("threadIdx.x", 8)
        y = T.launch_thread("threadIdx.y", 2)
        A[y, x] = y * 8 + x

    swap = {"threadIdx.x": index("threadIdx.y", "a"), "threadIdx.y": index("threadIdx.x", "b")}
    after = apply(tt.RemapThreadAxis(swap), before)
    assert list(after.attrs["tir.kernel_launch_params"]) == ["threadIdx.y", "threadIdx.x"]
    extents = {str(s.node.thread_tag): int(s.value) for s in (after.body, after.body.body)}
    assert extents == {"threadIdx.y": 8, "threadIdx.x": 2}
    A = np.zeros((2, 8), "int32")
    interpret(after)(A)
    np.testing.assert_array_equal(A.ravel(), np.arange(16))


def test_other_indices_stay():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32")):
        x = T.launch_thread("threadIdx.x", 8)
        A[x] = T.float32(1)

    after = apply(tt.RemapThreadAxis({"threadIdx.y": index("threadIdx.z", "z")}), before)
    tvm.ir.assert_structural_equal(after, before)
