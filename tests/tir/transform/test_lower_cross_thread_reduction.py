# SPDX-License-Identifier: Apache-2.0
"""Reductions over threads: each thread reduces its part, then all of them together."""

import numpy as np
import pytest
import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.fuzz.steps import check_every_step, run
from tests.tir.programs import floats


@T.prim_func
def row_max_and_where(
    A: T.Buffer((2, 6), "float32"), where: T.Buffer((2,), "int32"), top: T.Buffer((2,), "float32")
):
    for i in T.thread_binding(2, "threadIdx.y"):
        for t in T.thread_binding(6, "threadIdx.x"):
            with T.block("argmax"):
                vi, vk = T.axis.remap("SR", [i, t])
                with T.init():
                    where[vi] = -1
                    top[vi] = T.min_value("float32")
                v_where: T.int32 = T.Select(top[vi] >= A[vi, vk], where[vi], vk)
                v_top: T.float32 = T.Select(top[vi] >= A[vi, vk], top[vi], A[vi, vk])
                where[vi] = v_where
                top[vi] = v_top


def test_cross_thread_reduction_of_two_values():
    A = floats(2, 6)
    out = [np.zeros(2, "int32"), np.zeros(2, "float32")]
    mod = check_every_step(row_max_and_where, [A, *out])
    _, where, top = run(mod, A, *out)
    np.testing.assert_array_equal(where, A.argmax(1))
    np.testing.assert_array_equal(top, A.max(1))


def test_results_are_stored_where_all_conditions_hold():
    @T.prim_func
    def tiles(A: T.Buffer((4, 5, 8), "float32"), B: T.Buffer((4, 5), "float32")):
        for io, jo, ii, ji in T.grid(2, 2, 3, 3):
            for t in T.thread_binding(8, "threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(4, io * 3 + ii)
                    vj = T.axis.spatial(5, jo * 3 + ji)
                    vk = T.axis.reduce(8, t)
                    T.where(io * 3 + ii < 4 and jo * 3 + ji < 5)
                    with T.init():
                        B[vi, vj] = T.float32(0)
                    B[vi, vj] = B[vi, vj] + A[vi, vj, vk]

    A = floats(4, 5, 8)
    mod = check_every_step(tiles, [A, np.zeros((4, 5), "float32")])
    got = run(mod, A, np.zeros((4, 5), "float32"))[1]
    np.testing.assert_allclose(got, A.sum(2), rtol=1e-5)


def test_cross_thread_reduction_beside_other_statements_is_an_error():
    @T.prim_func
    def shared_loop(A: T.Buffer((8, 32), "float32"), B: T.Buffer((1,), "float32")):
        C = T.alloc_buffer((8, 32), scope="local")
        for t in T.thread_binding(32, "threadIdx.x"):
            for o in range(8):
                with T.block("C"):
                    vo, vt = T.axis.remap("SS", [o, t])
                    C[vo, vt] = A[vo, vt]
                with T.block("B"):
                    vo, vt = T.axis.remap("RR", [o, t])
                    with T.init():
                        B[0] = T.float32(0)
                    B[0] = B[0] + C[vo, vt]

    with pytest.raises(ValueError, match="expected block B, .* but loop o has other statements"):
        tt.LowerCrossThreadReduction()(tvm.IRModule({"main": shared_loop}))


def test_cross_thread_reduction_of_another_form():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for t in T.thread_binding(8, "threadIdx.x"):
            with T.block("B"):
                vk = T.axis.reduce(8, t)
                with T.init():
                    B[0] = T.float32(0)
                B[0] = T.exp(B[0]) - A[vk]

    with pytest.raises(ValueError, match="block B, which reduces over threads"):
        tt.LowerCrossThreadReduction()(tvm.IRModule({"main": before}))


def test_a_parameter_that_is_read_through_its_pointer():
    """The blocks that are made say so: later passes keep its memory where it is."""

    @T.prim_func
    def func(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):
        for k in range(2):
            for t in T.thread_binding(32, "threadIdx.x"):
                with T.block("B"):
                    vk = T.axis.reduce(64, k * 32 + t)
                    T.reads(A[0:64])
                    T.writes(B[0])
                    with T.init():
                        B[0] = T.float32(0)
                    B[0] = B[0] + T.call_extern("float32", "first", A.access_ptr("r", offset=vk))

    after = tt.LowerCrossThreadReduction()(tvm.IRModule({"main": func}))
    read = {}

    def note(node):
        if isinstance(node, tvm.tir.Block):
            read[node.name_hint] = {region.buffer.name for region in node.reads}

    tvm.tir.stmt_functor.post_order_visit(after["main"].body, note)
    assert "A" in read["B_in_thread"] and "A" not in read["B_cross_thread"]
