# SPDX-License-Identifier: Apache-2.0
"""reorder: the loops of a nest in another order."""

from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import elementwise, matmul, shared_loop


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
