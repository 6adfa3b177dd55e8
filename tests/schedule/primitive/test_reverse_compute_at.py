# SPDX-License-Identifier: Apache-2.0
"""reverse_compute_at: a consumer moves below a loop of its producers."""

from tvm import tir
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import dynamic_sums, matmul_relu, stencil, two


def test_reverse_compute_at():
    @T.prim_func
    def expected(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        B = T.alloc_buffer((16, 16))
        for i in range(16):
            for j in range(16):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * 2.0
            for ax0 in range(16):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, ax0])
                    C[vi, vj] = B[vi, vj] + 1.0

    apply(two, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0]), expected)


def test_reverse_compute_at_reduction_over_the_loop():
    """The reduction goes on in every iteration of the loop."""
    apply(
        dynamic_sums, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[1]), sizes={"n": 5}
    )


def test_refuse_partial_reduction():
    refused(
        matmul_relu,
        lambda sch: sch.reverse_compute_at("D", sch.get_loops("C")[2]),
        "not done with an element in one iteration of loop k",
    )


def test_refuse_halo_reverse():
    def primitives(sch):
        outer, _ = sch.split(sch.get_loops("B")[0], [None, 5])
        sch.reverse_compute_at("C", outer)

    refused(stencil, primitives, "does not run for all values|not affine")


def test_a_consumer_that_splits_an_index_moves_to_its_producer():
    @T.prim_func
    def func(A: T.Buffer((16, 16), "float32"), C: T.Buffer((256,), "float32")):
        B = T.alloc_buffer((16, 16))
        for i, j in T.grid(16, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0
        for i in range(256):
            with T.block("C"):
                v = T.axis.spatial(256, i)
                C[v] = B[v // 16, v % 16] + 1.0

    sch = apply(func, lambda s: s.reverse_compute_at("C", s.get_loops("B")[0]))
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("C")] == [16, 16]


def test_a_reduction_over_threads_moves_below_them():
    @T.prim_func
    def func(A: T.Buffer((4, 64), "float32"), S: T.Buffer((4,), "float32")):
        B = T.alloc_buffer((4, 64))
        for i, j in T.grid(4, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(4, 64):
            with T.block("S"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    S[vi] = 0.0
                S[vi] = S[vi] + B[vi, vj]

    def primitives(sch):
        i, j = sch.get_loops("B")
        sch.bind(i, "blockIdx.x")
        sch.bind(j, "threadIdx.x")
        sch.reverse_compute_at("S", j)

    sch = apply(func, primitives, run=False)
    lowered = tir.transform.LowerCrossThreadReduction()(sch.mod)
    assert "T.tvm_thread_allreduce" in lowered.script()
