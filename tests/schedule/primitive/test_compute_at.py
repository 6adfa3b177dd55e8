# SPDX-License-Identifier: Apache-2.0
"""compute_at, and what it shares with reverse_compute_at."""

import pytest
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import dynamic_sums, matmul_relu, stencil, two


def test_compute_at():
    @T.prim_func
    def expected(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        B = T.alloc_buffer((16, 16))
        for i in range(16):
            for ax0 in range(16):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, ax0])
                    B[vi, vj] = A[vi, vj] * 2.0
            for j in range(16):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj] + 1.0

    apply(two, lambda sch: sch.compute_at("B", sch.get_loops("C")[0]), expected)


def test_compute_at_preserves_unit_loops():
    sch = apply(
        two, lambda sch: sch.compute_at("B", sch.get_loops("C")[1], preserve_unit_loops=True)
    )
    assert len(sch.get_loops("B")) == 4
    sch = apply(two, lambda sch: sch.compute_at("B", sch.get_loops("C")[1]))
    assert len(sch.get_loops("B")) == 2


def test_compute_at_halo():
    def primitives(sch):
        outer, _ = sch.split(sch.get_loops("C")[0], [None, 6])
        sch.compute_at("B", outer)

    @T.prim_func
    def expected(A: T.Buffer((20,), "float32"), C: T.Buffer((18,), "float32")):
        B = T.alloc_buffer((20,))
        for i_0 in range(3):
            for ax0 in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(20, i_0 * 6 + ax0)
                    B[vi] = A[vi] * 2.0
            for i_1 in range(6):
                with T.block("C"):
                    vi = T.axis.spatial(18, i_0 * 6 + i_1)
                    C[vi] = B[vi] + B[vi + 1] + B[vi + 2]

    apply(stencil, primitives, expected)


def test_compute_at_halo_not_dividing():
    def primitives(sch):
        outer, _ = sch.split(sch.get_loops("C")[0], [None, 5])
        sch.compute_at("B", outer)

    sch = apply(stencil, primitives)
    assert "T.where" in sch.mod.script()


@pytest.mark.parametrize("tile", [2, 3])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_tiles(tile, depth):
    def tiled(sch, block):
        i, j = sch.get_loops(block)[:2]
        (io, ii), (jo, ji) = sch.split(i, [None, tile]), sch.split(j, [None, tile])
        sch.reorder(io, jo, ii, ji)
        return [io, jo, ii][depth]

    apply(matmul_relu, lambda sch: sch.compute_at("C", tiled(sch, "D")))
    if depth < 2 or tile == 2:
        apply(matmul_relu, lambda sch: sch.reverse_compute_at("D", tiled(sch, "C")))


def test_symbolic():
    apply(dynamic_sums, lambda sch: sch.compute_at("B", sch.get_loops("C")[0]), sizes={"n": 5})
    apply(
        dynamic_sums, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0]), sizes={"n": 5}
    )

    def split(sch):
        outer, _ = sch.split(sch.get_loops("C")[0], [None, 4])
        sch.compute_at("B", outer)

    apply(dynamic_sums, split, sizes={"n": 7})


@pytest.mark.parametrize("index, position", [(-1, 1), (-2, 0), (0, 0), (1, 1)])
def test_index(index, position):
    @T.prim_func
    def before(
        A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")
    ):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2.0
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]
            with T.block("D"):
                vi = T.axis.spatial(8, i)
                D[vi] = B[vi]

    sch = apply(before, lambda sch: sch.compute_at("B", sch.get_loops("D")[0], index=index))
    children = sch.get_child_blocks(sch.get_loops("D")[0])
    assert sch.get(children[position]).name_hint == "B"


def test_refuse_index():
    refused(two, lambda sch: sch.compute_at("B", sch.get_loops("C")[0], index=3), "got 3")


def test_refuse_consumers_elsewhere():
    @T.prim_func
    def before(
        A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")
    ):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2.0
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]
        for i in range(8):
            with T.block("D"):
                vi = T.axis.spatial(8, i)
                D[vi] = B[vi] + C[vi]

    refused(
        before,
        lambda sch: sch.compute_at("B", sch.get_loops("C")[0]),
        "all the consumers of block B below the loop, but block D is not",
    )
    refused(
        before,
        lambda sch: sch.reverse_compute_at("D", sch.get_loops("B")[0]),
        "all the producers of block D below the loop or before it, but block C is not",
    )


def test_refuse_output_and_own_loop():
    refused(two, lambda sch: sch.compute_at("C", sch.get_loops("B")[0]), "an output")
    refused(two, lambda sch: sch.compute_at("B", sch.get_loops("B")[0]), "no ancestor of block B")
    refused(
        two, lambda sch: sch.reverse_compute_at("B", sch.get_loops("C")[0]), "expected a producer"
    )


def test_refuse_overwritten():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2.0
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[7 - vi] = 0.0

    refused(before, lambda sch: sch.compute_at("B", sch.get_loops("C")[0]), "may be overwritten")


@T.prim_func
def mirrored(A: T.Buffer((10,), "float32"), C: T.Buffer((10,), "float32")):
    B = T.alloc_buffer((10,))
    for i in range(10):
        with T.block("B"):
            v = T.axis.spatial(10, i)
            B[9 - v] = A[v] * 2.0
    for i in range(10):
        with T.block("C"):
            v = T.axis.spatial(10, i)
            C[v] = B[v] + 1.0


def test_an_index_that_falls():
    sch = apply(mirrored, lambda s: s.compute_at("B", s.get_loops("C")[0]))
    assert len(sch.get_loops("B")) == 1, "only the element that is needed"
    sch = apply(mirrored, lambda s: s.compute_at("B", s.split(s.get_loops("C")[0], [None, 4])[0]))
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("B")] == [3, 4]
