# SPDX-License-Identifier: Apache-2.0
"""bind: the iterations of a loop become threads."""

from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import elementwise, matmul


def test_bind():
    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
        for i in T.thread_binding(16, thread="blockIdx.x"):
            for j in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * 2.0

    def primitives(sch):
        i, j = sch.get_loops("B")
        sch.bind(i, "blockIdx.x")
        sch.bind(j, "threadIdx.x")

    apply(elementwise, primitives, expected)


def test_reduction_over_threads():
    def primitives(sch):
        sch.bind(sch.get_loops("C")[2], "threadIdx.x")

    apply(matmul, primitives, run=False)
    refused(
        matmul,
        lambda sch: sch.bind(sch.get_loops("C")[2], "blockIdx.x"),
        "the reduction iterator vk",
    )


def test_bind_refusals():
    def unknown(sch):
        sch.bind(sch.get_loops("B")[0], "threadIdx.w")

    tags = "expected blockIdx, clusterCtaIdx, threadIdx or vthread"
    refused(elementwise, unknown, rf"{tags}.*got 'threadIdx.w'")

    def inner(sch):
        i, j = sch.get_loops("B")
        sch.bind(i, "threadIdx.x")
        sch.bind(j, "threadIdx.x")

    refused(elementwise, inner, "the outer loop i is bound to it")

    def outer(sch):
        i, j = sch.get_loops("B")
        sch.bind(j, "threadIdx.x")
        sch.bind(i, "threadIdx.x")

    refused(elementwise, outer, "the inner loop j is bound to it")
