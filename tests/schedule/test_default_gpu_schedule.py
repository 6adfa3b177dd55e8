# SPDX-License-Identifier: Apache-2.0
"""The plainest schedule for a GPU: iterations that may run in any order are threads."""

import numpy as np
import pytest
import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.fuzz.steps import run
from tests.tir.programs import floats


@pytest.mark.parametrize("rows, columns", [(8, 64), (3, 5)])
def test_default_gpu_schedule(rows, columns):
    @T.prim_func
    def before(
        A: T.Buffer((rows, columns), "float32"),
        sums: T.Buffer((rows,), "float32"),
        total: T.Buffer((1,), "float32"),
    ):
        for k, i in T.grid(columns, rows):
            with T.block("sums"):
                vk, vi = T.axis.remap("RS", [k, i])
                with T.init():
                    sums[vi] = T.float32(0)
                sums[vi] = sums[vi] + A[vi, vk]
        for k in range(rows):
            with T.block("total"):
                vk = T.axis.reduce(rows, k)
                with T.init():
                    total[0] = T.float32(0)
                total[0] = total[0] + sums[vk]

    target = tvm.target.Target({"kind": "cuda", "max_threads_per_block": 4, "thread_warp_size": 4})
    mod = tt.BindTarget(target)(tvm.IRModule({"main": before}))
    after = tt.DefaultGPUSchedule()(mod)
    assert after.script().count("threadIdx.x") == after.script().count("blockIdx.x") == 2
    tvm.ir.assert_structural_equal(tt.DefaultGPUSchedule()(after), after)
    inputs = [floats(rows, columns), np.zeros(rows, "float32"), np.zeros(1, "float32")]
    for got, want in zip(run(after, *inputs), run(before, *inputs), strict=True):
        np.testing.assert_array_equal(got, want)
    on_cpu = tt.BindTarget(tvm.target.Target("c"))(tvm.IRModule({"main": before}))
    tvm.ir.assert_structural_equal(tt.DefaultGPUSchedule()(on_cpu), on_cpu)
