# SPDX-License-Identifier: Apache-2.0
"""reverse_compute_inline: what a block computes is computed where its only input is produced."""

from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import dynamic_transposed, stages_inlined, two_stages


def test_reverse_compute_inline():
    apply(two_stages, lambda sch: sch.reverse_compute_inline("C"), stages_inlined)


def test_reverse_compute_inline_symbolic_and_predicated():
    def primitives(sch):
        sch.split(sch.get_loops("C")[1], [None, 4])
        sch.split(sch.get_loops("B")[0], [None, 4])
        sch.reverse_compute_inline("C")

    apply(dynamic_transposed, primitives, sizes={"n": 7})


def test_reverse_compute_inline_part():
    @T.prim_func
    def before(A: T.Buffer((16,), "float32"), C: T.Buffer((5,), "float32")):
        B = T.alloc_buffer((16,))
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] * 2.0
        for i in range(5):
            with T.block("C"):
                vi = T.axis.spatial(5, i)
                C[vi] = B[vi * 2 + 3] + 1.0

    sch = apply(before, lambda sch: sch.reverse_compute_inline("C"))
    assert "T.where" in sch.mod.script()


def test_refuse_reading_before():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = C[7 - vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    refused(before, lambda sch: sch.reverse_compute_inline("C"), "reads buffer C before block C")


def test_refuse_reverse_reading_twice():
    @T.prim_func
    def before(
        A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8, 8), "float32")
    ):
        B = T.alloc_buffer((8,))
        E = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] + B[7 - vi]
        for i in range(8):
            with T.block("E"):
                vi = T.axis.spatial(8, i)
                E[vi] = A[vi]
        for i, j in T.grid(8, 8):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = E[vi]

    refused(before, lambda sch: sch.reverse_compute_inline("C"), "one element of buffer B per")
    refused(before, lambda sch: sch.reverse_compute_inline("D"), "do not tell its iterators apart")


def test_refuse_reverse_reading_more_than_was_stored():
    """Iterations without a counterpart in the producer would get lost."""

    @T.prim_func
    def padded(A: T.Buffer((4,), "float32"), C: T.Buffer((6,), "float32")):
        B = T.alloc_buffer((4,))
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * 2.0
        for i in range(6):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                T.reads(B[vi - 1])
                T.writes(C[vi])
                C[vi] = T.if_then_else(vi >= 1 and vi < 5, B[vi - 1], T.float32(0))

    why = "expected block B to store all elements that block C reads, which cannot be shown"
    refused(padded, lambda sch: sch.reverse_compute_inline("C"), why)
    apply(padded, lambda sch: sch.compute_inline("B"))
