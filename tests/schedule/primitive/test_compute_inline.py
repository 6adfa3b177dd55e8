# SPDX-License-Identifier: Apache-2.0
"""compute_inline, and what it shares with reverse_compute_inline."""

from tvm import te, tir
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import dynamic_transposed, stages_inlined, two_stages


def test_compute_inline():
    apply(two_stages, lambda sch: sch.compute_inline("B"), stages_inlined)


def test_compute_inline_keeps_loops_and_blocks():
    def primitives(sch):
        c = sch.get_block("C")
        i, j = sch.get_loops(c)
        sch.compute_inline("B")
        sch.split(j, [None, 4])
        sch.parallel(i)
        assert sch.get(c).name_hint == "C"

    apply(two_stages, primitives)


def test_compute_inline_into_several():
    @T.prim_func
    def before(
        A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((), "float32")
    ):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.exp(A[vi])
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[7 - vi] * B[vi]
        for k in range(8):
            with T.block("D"):
                vk = T.axis.reduce(8, k)
                with T.init():
                    D[()] = 0.0
                D[()] = D[()] + B[vk]

    @T.prim_func
    def expected(
        A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((), "float32")
    ):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = T.exp(A[7 - vi]) * T.exp(A[vi])
        for k in range(8):
            with T.block("D"):
                vk = T.axis.reduce(8, k)
                with T.init():
                    D[()] = 0.0
                D[()] = D[()] + T.exp(A[vk])

    apply(before, lambda sch: sch.compute_inline("B"), expected)


def test_compute_inline_symbolic_and_predicated():
    def primitives(sch):
        sch.split(sch.get_loops("B")[0], [None, 4])
        sch.compute_inline("B")

    apply(dynamic_transposed, primitives, sizes={"n": 7})


def test_inline_through_a_change_of_shape():
    @T.prim_func
    def before(A: T.Buffer((32,), "float32"), C: T.Buffer((4, 8), "float32")):
        B = T.alloc_buffer((32,))
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi * 4 + vj] = A[vi * 4 + vj] * 2.0
        for i, j in T.grid(4, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi * 8 + vj] + 1.0

    apply(before, lambda sch: sch.compute_inline("B"))
    apply(before, lambda sch: sch.reverse_compute_inline("C"))


def test_refuse_output():
    refused(two_stages, lambda sch: sch.compute_inline("C"), "allocated in the scope")
    refused(two_stages, lambda sch: sch.reverse_compute_inline("B"), "one producer, got 0")


def test_refuse_root():
    refused(two_stages, lambda sch: sch.compute_inline("root"), "got the root block")


def test_refuse_reduction():
    @T.prim_func
    def before(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i, k in T.grid(8, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] + 1.0

    refused(before, lambda sch: sch.compute_inline("B"), "body is one store")
    refused(before, lambda sch: sch.reverse_compute_inline("C"), "has an init")


def test_refuse_several_writers_and_readers():
    @T.prim_func
    def before(
        A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")
    ):
        B = T.alloc_buffer((8,))
        for i in range(4):
            with T.block("B0"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]
        for i in range(4):
            with T.block("B1"):
                vi = T.axis.spatial(4, i)
                B[vi + 4] = A[vi + 4]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]
        for i in range(8):
            with T.block("D"):
                vi = T.axis.spatial(8, i)
                D[vi] = B[vi]

    refused(before, lambda sch: sch.compute_inline("B0"), "not the only block that writes buffer B")
    refused(before, lambda sch: sch.reverse_compute_inline("C"), "one producer, got 2")


def test_parts_that_are_written_may_be_inlined():
    @T.prim_func
    def before(A: T.Buffer((5,), "float32"), C: T.Buffer((4,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(5):
            with T.block("B"):
                vi = T.axis.spatial(5, i)
                B[vi] = A[vi] + 1.0
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi + 1]

    @T.prim_func
    def expected(A: T.Buffer((5,), "float32"), C: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi + 1] + 1.0

    apply(before, lambda sch: sch.compute_inline("B"), expected)


def test_what_nobody_reads_is_removed():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]

    @T.prim_func
    def expected(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]

    apply(before, lambda sch: sch.compute_inline("B"), expected)


def test_refuse_part():
    @T.prim_func
    def before(A: T.Buffer((5,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(5):
            with T.block("B"):
                vi = T.axis.spatial(5, i)
                B[vi] = A[vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    refused(before, lambda sch: sch.compute_inline("B"), "does not write all of buffer B")


def test_refuse_predicate():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                T.where(i < 5)
                B[vi] = A[vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    refused(
        before, lambda sch: sch.compute_inline("B"), "not run for all values of its iterator vi"
    )


def test_refuse_side_effect():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.call_extern("float32", "draw", A[vi])
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    refused(before, lambda sch: sch.compute_inline("B"), "without side effects")


def test_refuse_overwritten_input():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = 0.0
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    refused(before, lambda sch: sch.compute_inline("B"), "may be overwritten")


def test_blocks_without_iterations_are_inlined():
    a = te.placeholder((3, 0), name="A")
    b = te.compute((3, 0), lambda i, j: a[i, j] + 1.0, "B")
    sch = tir.Schedule(
        te.create_prim_func([a, te.compute((3, 0), lambda i, j: b[i, j] * 2.0, "C")])
    )
    sch.compute_inline("B")
    assert [str(sch.get(x).name_hint) for x in sch.get_child_blocks(sch.get_block("root"))] == ["C"]


def test_what_a_predicate_reads_is_inlined():
    @T.prim_func
    def func(A: T.Buffer((32,), "int32"), C: T.Buffer((32,), "float32")):
        B = T.alloc_buffer((32,), "int32")
        for i in range(32):
            with T.block("B"):
                vi = T.axis.remap("S", [i])
                B[vi] = A[vi] + 1
        for i in range(32):
            with T.block("C"):
                vi = T.axis.remap("S", [i])
                T.where(B[i] < 4)
                C[vi] = 1.0

    sch = apply(func, lambda s: s.compute_inline("B"))
    assert "B" not in [b.name for b in sch.get(sch.get_block("root")).alloc_buffers]
