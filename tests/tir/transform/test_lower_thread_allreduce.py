# SPDX-License-Identifier: Apache-2.0
"""Reductions over threads: through the registers of warps, or through shared memory."""

import numpy as np
import pytest
from tvm.script import tir as T

from tests.fuzz.steps import check_every_step, run
from tests.tir.programs import floats


@T.prim_func
def row_sums(A: T.Buffer((2, 12), "float32"), B: T.Buffer((2,), "float32")):
    for i in T.thread_binding(2, "blockIdx.x"):
        for k in T.serial(3):
            for t in T.thread_binding(4, "threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(2, i)
                    vk = T.axis.reduce(12, k * 4 + t)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]


@pytest.mark.parametrize("target", ["opencl", {"kind": "cuda", "thread_warp_size": 4}])
def test_cross_thread_reduction(target):
    A = floats(2, 12)
    mod = check_every_step(row_sums, [A, np.zeros(2, "float32")], target)
    np.testing.assert_allclose(run(mod, A, np.zeros(2, "float32"))[1], A.sum(1), rtol=1e-5)
    assert ("tvm_warp_shuffle" in mod["main_kernel"].script()) == isinstance(target, dict)
