# SPDX-License-Identifier: Apache-2.0
"""Records when functions and loops begin and end."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply


@T.prim_func
def nests(A: T.Buffer((8, 8), "float32")):
    for i in range(8):
        for j in range(8):
            A[i, j] = T.float32(1)
        for j in range(8):
            A[i, j] = A[i, j] + T.float32(1)
    for i in T.parallel(8):
        for j in range(8):
            A[i, j] = A[i, j] * T.float32(2)


# The function is 0, its nests are 1 and 4, the inner loops of the first are 2 and 3.
@pytest.mark.parametrize(
    "options, count",
    [
        ({}, 3),  # the function and the two nests: the height is 1 by default
        ({"lwp_min_height": 0}, 5),  # the loops in the first nest are siblings
        ({"lwp_min_height": 0, "lwp_max_depth": 1}, 3),
        ({"lwp_min_height": 0, "lwp_disable_func_prof": True}, 4),
        ({"lwp_min_height": 2}, 1),
    ],
)
def test_which_loops_are_recorded(options, count):
    config = {f"tir.{key}": value for key, value in options.items()}
    text = apply(
        tt.InstrumentProfileIntrinsics(), nests, **{"tir.reset_start_id": True, **config}
    ).script()
    numbers = [f"profile_intrinsic({i})" for i in range(count)]
    assert text.count("start_profile_intrinsic") == text.count("end_profile_intrinsic") == count
    assert all(text.count(number) == 2 for number in numbers)


def test_loops_without_siblings_on_demand():
    @T.prim_func
    def one(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)

    config = {"tir.lwp_min_height": 0, "tir.reset_start_id": True}
    for siblings, count in ((True, 1), (False, 2)):
        after = apply(
            tt.InstrumentProfileIntrinsics(), one, **config, **{"tir.instr_siblings": siblings}
        )
        assert after.script().count("start_profile_intrinsic") == count


def test_height_counts_the_loops_below():
    @T.prim_func
    def deep(A: T.Buffer((2, 2, 2, 2), "float32")):
        for i, j, k, l in T.grid(2, 2, 2, 2):
            A[i, j, k, l] = T.float32(1)

    config = {"tir.reset_start_id": True, "tir.instr_siblings": False}
    for height, count in ((0, 5), (1, 4), (2, 3), (3, 2), (4, 1)):
        options = {**config, "tir.lwp_min_height": height}
        text = apply(tt.InstrumentProfileIntrinsics(), deep, **options).script()
        assert text.count("start_profile_intrinsic") == count


def test_times_are_recorded():
    config = {"tir.instrument_lwp": True, "tir.reset_start_id": True, "tir.lwp_min_height": 0}
    with tvm.transform.PassContext(config={**config, "tir.default_schedule": False}):
        run = tvm.compile(nests, tvm.testing.host_target())
    a = np.zeros((8, 8), "float32")
    tvm.runtime.profiling.marked_times(reset=True)
    for _ in range(3):
        run(a)
    times = tvm.runtime.profiling.marked_times()
    assert {number: count for number, (count, _) in times.items()} == {
        0: 3, 1: 3, 2: 24, 3: 24, 4: 3
    }  # fmt: skip
    assert times[0][1] >= times[1][1] >= times[2][1] > 0
    assert tvm.runtime.profiling.marked_times(reset=True) == times
    assert tvm.runtime.profiling.marked_times() == {}


def test_kernels_have_no_marks():
    @T.prim_func
    def kernel(A: T.Buffer((8, 8), "float32")):
        for i in T.thread_binding(8, "threadIdx.x"):
            for j in range(8):
                A[i, j] = T.float32(1)
            for j in range(8):
                A[i, j] = A[i, j] + T.float32(1)

    lowered = tt.UnifyThreadBinding()(tvm.IRModule({"main": kernel}))["main"]
    config = {"tir.lwp_min_height": 0, "tir.reset_start_id": True}
    after = apply(tt.InstrumentProfileIntrinsics(), lowered, **config)
    assert after.script().count("start_profile_intrinsic") == 1
