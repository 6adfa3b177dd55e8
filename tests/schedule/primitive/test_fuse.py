# SPDX-License-Identifier: Apache-2.0
"""fuse: a nest of loops becomes one loop."""

from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import dynamic, elementwise, matmul, two_stages


def test_fuse():
    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
        for i_j_fused in range(128):
            with T.block("B"):
                vi = T.axis.spatial(16, i_j_fused // 8)
                vj = T.axis.spatial(8, i_j_fused % 8)
                B[vi, vj] = A[vi, vj] * 2.0

    apply(elementwise, lambda sch: sch.fuse(*sch.get_loops("B")), expected)


def test_fuse_what_was_split():
    def primitives(sch):
        i, _ = sch.get_loops("B")
        sch.fuse(*sch.split(i, [4, 4]))

    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
        for i, j in T.grid(16, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

    apply(elementwise, primitives, expected)


def test_fuse_predicated():
    def primitives(sch):
        i, _ = sch.get_loops("B")
        i0, i1 = sch.split(i, [None, 5])
        fused = sch.fuse(i0, i1)
        sch.split(fused, [None, 8])

    apply(elementwise, primitives)


def test_fuse_symbolic():
    apply(dynamic, lambda sch: sch.fuse(*sch.get_loops("B")), sizes={"n": 7})


def test_fuse_refusals():
    def order(sch):
        i, j = sch.get_loops("B")
        sch.fuse(j, i)

    refused(elementwise, order, r"expected the loops from the outermost in")

    def twice(sch):
        i, _ = sch.get_loops("B")
        sch.fuse(i, i)

    refused(elementwise, twice, "expected each loop once, got i twice")
    refused(elementwise, lambda sch: sch.fuse(), "expected at least one loop, got none")

    def apart(sch):
        i, _, k = sch.get_loops("C")
        sch.fuse(i, k)

    refused(matmul, apart, "expected loops that follow each other")

    def other_nest(sch):
        sch.fuse(sch.get_loops("B")[0], sch.get_loops("C")[0])

    refused(two_stages, other_nest, "expected loops of one nest")

    @T.prim_func
    def triangle(A: T.Buffer((8, 8), "float32")):
        for i in range(8):
            for j in range(i + 1):
                with T.block("A"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.spatial(8, j)
                    A[vi, vj] = 1.0

    refused(triangle, lambda sch: sch.fuse(*sch.get_loops("A")), "expected a rectangular nest")

    def sequence(sch):
        sch.bind(sch.get_loops("B")[1], "threadIdx.x")
        sch.fuse(*sch.get_loops("B"))

    refused(elementwise, sequence, "expected a serial loop, got loop j, which is thread-bound")
