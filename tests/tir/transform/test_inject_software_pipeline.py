# SPDX-License-Identifier: Apache-2.0
"""Iterations of a loop overlap: statements of different stages are of different iterations."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import interpret
from tvm.tir import transform as tt

from tests.fuzz.steps import LOWERING, SYNCHRONIZED, check_every_step, run
from tests.tir.programs import floats


@T.prim_func
def pipelined(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for t in T.thread_binding(8, "threadIdx.x"):
        for i in T.serial(
            6,
            annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]},
        ):
            with T.block("body"):
                T.reads(A[i, 0:8])
                T.writes(B[i, 0:8])
                S = T.alloc_buffer((8,), scope="shared")
                with T.block("S"):
                    T.reads(A[i, t])
                    T.writes(S[t])
                    S[t] = A[i, t]
                with T.block("B"):
                    T.reads(S[7 - t])
                    T.writes(B[i, t])
                    B[i, t] = S[7 - t] * T.float32(2)


def test_software_pipeline_of_shared_memory():
    A = floats(6, 8)
    func = tt.InjectSoftwarePipeline()(tvm.IRModule({"main": pipelined}))["main"]
    got = run(func, A, np.zeros_like(A), threads="lockstep")[1]
    np.testing.assert_array_equal(got, A[:, ::-1] * 2)
    whole = func.body.block.body.body.block  # all iterations of one thread
    assert "T.reads(A[0:6, t])" in str(whole) and "T.writes(B[0:6, t])" in str(whole)
    mod = tvm.IRModule({"main": pipelined})
    for step in [*LOWERING[5:], *SYNCHRONIZED]:
        mod = step(mod)
    for order in ("forward", "backward"):
        got = run(mod, A, np.zeros_like(A), threads=order)[1]
        np.testing.assert_array_equal(got, A[:, ::-1] * 2)


@pytest.mark.parametrize(
    "stages, order",
    [
        ([0, 0, 1], [0, 1, 2]),
        ([0, 1, 2], [2, 1, 0]),
        ([0, 1, 1], [1, 0, 2]),
        ([0, 2, 3], [0, 1, 2]),
    ],
)
@pytest.mark.parametrize("extent", [1, 2, 3, 9])
def test_software_pipeline_orders(stages, order, extent):
    annotations = {"software_pipeline_stage": stages, "software_pipeline_order": order}

    @T.prim_func
    def before(A: T.Buffer((9,), "float32"), D: T.Buffer((9,), "float32"), n: T.int32):
        for i in T.serial(n, annotations=annotations):
            with T.block(""):
                T.reads(A[i])
                T.writes(D[i])
                B = T.alloc_buffer((1,))
                C = T.alloc_buffer((1,))
                B[0] = A[i] + T.float32(1)
                C[0] = B[0] * T.float32(2)
                D[i] = C[0] + B[0]

    A = floats(9)
    expected, got = np.zeros(9, "float32"), np.zeros(9, "float32")
    interpret(before)(A, expected, extent)
    dynamic = tt.InjectSoftwarePipeline()(tvm.IRModule({"main": before}))
    tir.analysis.verify_well_formed(dynamic)
    interpret(dynamic)(A, got, extent)
    np.testing.assert_array_equal(got, expected)
    fixed = tvm.IRModule({"main": before.specialize({before.params[2]: extent})})
    got[:] = 0
    interpret(tt.InjectSoftwarePipeline()(fixed))(A, got)
    np.testing.assert_array_equal(got, expected)


def test_software_pipeline_async_counts():
    @T.prim_func
    def before(A: T.Buffer((9,), "float32"), D: T.Buffer((9,), "float32")):
        for i in T.serial(
            9,
            annotations={
                "software_pipeline_stage": [0, 2],
                "software_pipeline_order": [0, 1],
                "software_pipeline_async_stages": [0],
            },
        ):
            with T.block(""):
                T.reads(A[i])
                T.writes(D[i])
                B = T.alloc_buffer((1,))
                B[0] = A[i]
                D[i] = B[0]

    after = tt.InjectSoftwarePipeline()(tvm.IRModule({"main": before}))
    counts = []
    tir.stmt_functor.post_order_visit(
        after["main"].body,
        lambda n: (
            counts.append(int(n.value))
            if isinstance(n, tir.AttrStmt) and n.attr_key == "async_wait_inflight_count"
            else None
        ),
    )
    assert counts == [2, 1, 0], "two copies may run in the loop, then fewer"


@pytest.mark.parametrize(
    "annotations, message",
    [
        ({"software_pipeline_stage": [0]}, "expected a stage and a place"),
        ({"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 0]}, "once"),
        ({"software_pipeline_stage": [1, 0]}, "later stage"),
        ({"software_pipeline_order": [0, 1]}, "beside"),
        ({"software_pipeline_stage": "x"}, "list of integers"),
    ],
)
def test_software_pipeline_errors(annotations, message):
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i in T.serial(8, annotations=annotations):
            with T.block(""):
                T.reads(A[i])
                T.writes(C[i])
                B = T.alloc_buffer((1,))
                B[0] = A[i]
                C[i] = B[0]

    with pytest.raises((ValueError, TypeError), match=message):
        tt.InjectSoftwarePipeline()(tvm.IRModule({"main": before}))


def test_memory_of_a_pipelined_block_stays_in_the_loop():
    """Allocated outside, the second load would replace what the first use still needs."""
    notes = {"software_pipeline_stage": [0, 2], "software_pipeline_order": [1, 0]}

    @T.prim_func
    def before(A: T.Buffer((4, 2), "float32"), B: T.Buffer((4, 2), "float32")):
        for t in T.thread_binding(2, "threadIdx.x"):
            for r in T.serial(4, annotations=notes):
                with T.block("rows"):
                    T.reads(A[r, t])
                    T.writes(B[r, t])
                    P = T.alloc_buffer((1,), scope="local")
                    with T.block("load"):
                        T.reads(A[r, t])
                        T.writes(P[0])
                        P[0] = A[r, t]
                    with T.block("use"):
                        T.reads(P[0])
                        T.writes(B[r, t])
                        B[r, t] = P[0] + T.float32(1)

    A = floats(4, 2)
    mod = check_every_step(before, [A, np.zeros_like(A)])
    np.testing.assert_array_equal(run(mod, A, np.zeros_like(A))[1], A + 1)
