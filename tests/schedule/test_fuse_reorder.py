# SPDX-License-Identifier: Apache-2.0
"""fuse, reorder"""

from tvm.script import tir as T

from .checking import apply, refused
from .programs import dynamic, elementwise, matmul, shared_loop, two_stages


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


def test_reorder():
    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
        for j, i in T.grid(8, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

    def primitives(sch):
        i, j = sch.get_loops("B")
        sch.reorder(j, i)

    apply(elementwise, primitives, expected)


def test_reorder_tiles():
    def primitives(sch):
        i, j, k = sch.get_loops("C")
        i0, i1 = sch.split(i, [None, 3])
        j0, j1 = sch.split(j, [None, 4])
        k0, k1 = sch.split(k, [None, 5])
        sch.reorder(i0, j0, k0, i1, k1, j1)
        sch.reorder(j1, i0)

    apply(matmul, primitives)


def test_reorder_changes_nothing():
    sch = apply(elementwise, lambda sch: sch.reorder(*sch.get_loops("B")), elementwise)
    assert not sch.mod["main"].scheduled_by_hand


def test_reorder_refusals():
    @T.prim_func
    def triangle(A: T.Buffer((8, 8), "float32")):
        for i in range(8):
            for j in range(i + 1):
                with T.block("A"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.spatial(8, j)
                    A[vi, vj] = 1.0

    def swap(name):
        def primitives(sch):
            i, j = sch.get_loops(name)[:2]
            sch.reorder(j, i)

        return primitives

    refused(triangle, swap("A"), "expected loop i to stay outside of loop j, whose bounds depend")

    @T.prim_func
    def recurrence(A: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[T.max(vi - 1, 0), T.min(vj + 1, 7)] + 1.0

    refused(recurrence, swap("A"), "block A reads elements of A that other iterations write")

    @T.prim_func
    def opaque(A: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("A"):
                vi = T.axis.opaque(8, i)
                vj = T.axis.spatial(8, j)
                A[vi, vj] = 1.0

    refused(opaque, swap("A"), "expected blocks with spatial and reduction iterators")

    @T.prim_func
    def overwritten(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi] = A[vi, vj]

    refused(overwritten, swap("B"), "expected every iteration of block B to write other elements")

    @T.prim_func
    def not_affine(A: T.Buffer((64,), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("A"):
                vi = T.axis.spatial(64, i * j)
                A[vi] = 1.0

    refused(not_affine, swap("A"), "bound to the loops one to one")

    @T.prim_func
    def loose(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = 1.0
            B[i] = B[i] + 1.0

    refused(loose, swap("A"), "expected all statements below the loop to be in blocks")


def test_reorder_values_that_cross_iterations():
    def primitives(sch):
        (i,) = sch.get_loops("B")
        i0, i1 = sch.split(i, [4, 4])
        sch.reorder(i1, i0)

    refused(shared_loop, primitives, "expected values of B to be used in the iteration")
