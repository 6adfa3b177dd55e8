# SPDX-License-Identifier: Apache-2.0
"""Splitting loops."""

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import dynamic, elementwise, matmul


def test_split_dividing():
    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
        for i_0, i_1, j in T.grid(4, 4, 8):
            with T.block("B"):
                vi = T.axis.spatial(16, i_0 * 4 + i_1)
                vj = T.axis.spatial(8, j)
                B[vi, vj] = A[vi, vj] * 2.0

    apply(elementwise, lambda sch: sch.split(sch.get_loops("B")[0], [None, 4]), expected)
    apply(elementwise, lambda sch: sch.split(sch.get_loops("B")[0], [4, None]), expected)
    apply(elementwise, lambda sch: sch.split(sch.get_loops("B")[0], [4, 4]), expected)


def test_split_predicated():
    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
        for i_0, i_1, j in T.grid(4, 5, 8):
            with T.block("B"):
                vi = T.axis.spatial(16, i_0 * 5 + i_1)
                vj = T.axis.spatial(8, j)
                T.where(i_0 * 5 + i_1 < 16)
                B[vi, vj] = A[vi, vj] * 2.0

    apply(elementwise, lambda sch: sch.split(sch.get_loops("B")[0], [None, 5]), expected)


def test_split_without_predicate():
    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
        for i_0, i_1, j in T.grid(4, 5, 8):
            with T.block("B"):
                vi = T.axis.spatial(16, i_0 * 5 + i_1)
                vj = T.axis.spatial(8, j)
                B[vi, vj] = A[vi, vj] * 2.0

    def primitives(sch):
        sch.split(sch.get_loops("B")[0], [None, 5], disable_predication=True)

    apply(elementwise, primitives, expected, run=False)


def test_split_symbolic():
    @T.prim_func
    def expected(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 8))
        B = T.match_buffer(b, (n, 8))
        for i_0, i_1, j in T.grid((n + 3) // 4, 4, 8):
            with T.block("B"):
                vi = T.axis.spatial(n, i_0 * 4 + i_1)
                vj = T.axis.spatial(8, j)
                T.where(i_0 * 4 + i_1 < n)
                B[vi, vj] = A[vi, vj] * 2.0

    def primitives(sch):
        sch.split(sch.get_loops("B")[0], [None, 4])

    apply(dynamic, primitives, expected, sizes={"n": 10})
    apply(dynamic, primitives, expected, sizes={"n": 0})


def test_split_reduction_thrice():
    def primitives(sch):
        i, j, k = sch.get_loops("C")
        sch.split(k, [2, 3, 2])
        sch.split(i, [None, 3])
        sch.split(j, [3, 3])

    apply(matmul, primitives)


def test_split_unit_iters():
    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
        for _, i_1, j in T.grid(1, 16, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i_1, j])
                B[vi, vj] = A[vi, vj] * 2.0

    def primitives(sch):
        sch.split(sch.get_loops("B")[0], [1, 16], preserve_unit_iters=False)

    apply(elementwise, primitives, expected)


def test_split_by_variables():
    def primitives(sch):
        i, j = sch.get_loops("B")
        tiles = sch.sample_perfect_tile(i, 3)
        sch.split(i, tiles)
        width = sch.sample_categorical([2, 4], [0.5, 0.5])
        sch.split(j, [None, width * 2])

    sch = apply(elementwise, primitives)
    assert len(sch.get_loops("B")) == 5


def test_split_loop_over_statements():
    @T.prim_func
    def before(A: T.Buffer((10,), "int32")):
        with T.block("root"):
            for i in range(10):
                A[i] = i
                if A[i] > 4:
                    A[i] = A[i] + 1

    sch = tir.Schedule(before, debug_mask="all")
    loop = sch.state.get_sref(sch.get(sch.get_block("root")).body).stmt
    assert isinstance(loop, tir.For)


def test_split_bounds_of_inner_loops():
    @T.prim_func
    def before(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        for i in range(8):
            for j in range(i + 1):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.spatial(8, j)
                    B[vi, vj] = A[vi, vj] * 2.0

    apply(before, lambda sch: sch.split(sch.get_loops("B")[0], [3, 3]))


@pytest.mark.parametrize(
    "factors, match",
    [
        (
            [4, 3],
            r"product of factors is not larger than or equal to the extent .* 16, got \[4, 3\]",
        ),
        ([0, 16], "expected positive factors, got 0"),
        ([-4, -4], "expected positive factors, got -4"),
        ([None, None], "expected at most one factor to be None, got two"),
        ([], "expected at least one factor, got none"),
    ],
)
def test_split_bad_factors(factors, match):
    refused(elementwise, lambda sch: sch.split(sch.get_loops("B")[0], factors), match)


def test_split_refuses_loops_that_mean_something():
    def annotated(sch):
        i, _ = sch.get_loops("B")
        sch.annotate(i, "key", 1)
        sch.split(i, [4, 4])

    refused(elementwise, annotated, "expected a loop without annotations, got loop i with 'key'")

    def bound(sch):
        i, _ = sch.get_loops("B")
        sch.bind(i, "threadIdx.x")
        sch.split(i, [4, 4])

    text = refused(elementwise, bound, "expected a serial loop, got loop i, which is thread-bound")
    assert 'for i in T.thread_binding(16, thread="threadIdx.x"):\n' in text and "^^^" in text


def test_split_wrong_types():
    sch = tir.Schedule(elementwise)
    i, _ = sch.get_loops("B")
    with pytest.raises(TypeError, match="loop"):
        sch.split(sch.get_block("B"), [4, 4])
    with pytest.raises(TypeError, match="factors"):
        sch.split(i, 4)
    with pytest.raises(tir.ScheduleError, match='expected integers as factors, got "a"'):
        sch.split(i, ["a"])
    tvm.ir.assert_structural_equal(sch.mod["main"].body, elementwise.body)
