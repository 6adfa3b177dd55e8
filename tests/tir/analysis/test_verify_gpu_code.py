# SPDX-License-Identifier: Apache-2.0
"""Limits of a GPU that a kernel must keep."""

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt


@T.prim_func
def kernel(A: T.Buffer((256,), "float32")):
    for b in T.thread_binding(2, "blockIdx.x"):
        for t in T.thread_binding(32, "threadIdx.x"):
            for v in T.vectorized(4):
                A[b * 128 + t * 4 + v] = T.float32(1)


@pytest.mark.parametrize(
    "limit, enough",
    [
        ("max_threads_per_block", 32),
        ("max_thread_x", 32),
        ("max_vector_bytes", 16),
        ("max_kernels", 1),
    ],
)
def test_verify_gpu_code(limit, enough):
    assert tir.analysis.verify_gpu_code(kernel, {limit: enough})
    assert not tir.analysis.verify_gpu_code(kernel, {limit: enough - 1})
    message = f"kernel: expected at most {enough - 1} .*{limit}.*got {enough}"
    with pytest.raises(RuntimeError, match=message):
        tt.VerifyGPUCode({limit: enough - 1})(tvm.IRModule({"kernel": kernel}))


def test_verify_gpu_code_knows_its_limits():
    with pytest.raises(ValueError, match="did you mean 'max_kernels'"):
        tir.analysis.verify_gpu_code(kernel, {"max_kernel": 1})
