# SPDX-License-Identifier: Apache-2.0
"""Whole kernels lowered step by step, run in the interpreter after each."""

import numpy as np
from tvm.script import tir as T

from tests.fuzz.steps import check_every_step, run
from tests.tir.programs import floats, transpose


def test_shared_memory():
    A = floats(8, 8)
    mod = check_every_step(transpose, [A, np.zeros_like(A)])
    np.testing.assert_array_equal(run(mod, A, np.zeros_like(A))[1], A.T)
    script = mod["main_kernel"].script()
    assert script.count("tvm_storage_sync") == 1
    assert "decl_buffer((32,)" in script, "the tile of one block only"


@T.prim_func
def softmax(A: T.Buffer((2, 4), "float32"), B: T.Buffer((2, 4), "float32")):
    top = T.alloc_buffer((2,), scope="shared")
    total = T.alloc_buffer((2,), scope="shared")
    for b in T.thread_binding(2, "blockIdx.x"):
        for t in T.thread_binding(4, "threadIdx.x"):
            with T.block("top"):
                vi, vk = T.axis.remap("SR", [b, t])
                with T.init():
                    top[vi] = T.min_value("float32")
                top[vi] = T.max(top[vi], A[vi, vk])
        for t in T.thread_binding(4, "threadIdx.x"):
            with T.block("total"):
                vi, vk = T.axis.remap("SR", [b, t])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] = total[vi] + T.exp(A[vi, vk] - top[vi])
        for t in T.thread_binding(4, "threadIdx.x"):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [b, t])
                B[vi, vj] = T.exp(A[vi, vj] - top[vi]) / total[vi]


def test_softmax():
    A = floats(2, 4)
    mod = check_every_step(softmax, [A, np.zeros_like(A)])
    e = np.exp(A - A.max(1, keepdims=True))
    expected = e / e.sum(1, keepdims=True)
    np.testing.assert_allclose(run(mod, A, np.zeros_like(A))[1], expected, rtol=1e-4)
