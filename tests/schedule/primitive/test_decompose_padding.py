# SPDX-License-Identifier: Apache-2.0
"""decompose_padding"""

import pytest
from tvm import tir
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import elementwise


@T.prim_func
def pad2d(A: T.Buffer((8, 6), "float32"), B: T.Buffer((12, 10), "float32")):
    for i, j in T.grid(12, 10):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(
                2 <= vi and vi < 10 and vj >= 1 and vj - 1 <= 5, A[vi - 2, vj - 1], T.float32(7)
            )


def test_outer_loop():
    @T.prim_func
    def expected(A: T.Buffer((8, 6), "float32"), B: T.Buffer((12, 10), "float32")):
        for i_pad, j_pad in T.grid(12, 10):
            with T.block("B_pad_const"):
                vi, vj = T.axis.remap("SS", [i_pad, j_pad])
                B[vi, vj] = T.float32(7)
        for i, j in T.grid(8, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi + 2, vj + 1] = A[vi, vj]

    def primitives(sch):
        block = sch.decompose_padding("B", sch.get_loops("B")[0])
        assert sch.get(block).name_hint == "B_pad_const"

    apply(pad2d, primitives, expected)


def test_inner_loop():
    """Where the outer loop stays one for both it cannot be shorter: the block gets a predicate."""

    @T.prim_func
    def expected(A: T.Buffer((8, 6), "float32"), B: T.Buffer((12, 10), "float32")):
        for i in range(12):
            for j_pad in range(10):
                with T.block("B_pad_const"):
                    vi, vj = T.axis.remap("SS", [i, j_pad])
                    B[vi, vj] = T.float32(7)
            for j in range(6):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.where(2 <= i and i < 10)
                    B[vi, vj + 1] = A[vi - 2, vj]

    apply(pad2d, lambda sch: sch.decompose_padding("B", sch.get_loops("B")[1]), expected)


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_split(at):
    def primitives(sch):
        i, j = sch.get_loops("B")
        sch.split(i, [None, 5])
        sch.split(j, [None, 4])
        sch.decompose_padding("B", sch.get_loops("B")[at])

    apply(pad2d, primitives)


def test_parallel_and_vectorized():
    def primitives(sch):
        i, j = sch.get_loops("B")
        sch.parallel(i)
        sch.vectorize(j)
        sch.decompose_padding("B", i)

    apply(pad2d, primitives)


def test_symbolic():
    @T.prim_func
    def before(a: T.handle, b: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (m,))
        for i in range(m):
            with T.block("B"):
                vi = T.axis.spatial(m, i)
                B[vi] = T.Select(vi >= 2 and vi < n + 2, A[T.min(T.max(vi - 2, 0), n - 1)], 0.0)

    for m in (1, 2, 5, 7, 9):
        apply(
            before,
            lambda sch: sch.decompose_padding("B", sch.get_loops("B")[0]),
            sizes={"n": 5, "m": m},
        )


def test_consumer_follows():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), C: T.Buffer((10,), "float32")):
        B = T.alloc_buffer((10,))
        for i in range(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                B[vi] = T.if_then_else(vi < 8, A[vi], T.Cast("float32", vi))
        for i in range(10):
            with T.block("C"):
                vi = T.axis.spatial(10, i)
                C[vi] = B[9 - vi]

    apply(before, lambda sch: sch.decompose_padding("B", sch.get_loops("B")[0]))


def test_can_decompose_padding():
    sch = tir.Schedule(pad2d, debug_mask="all")
    i, _ = sch.get_loops("B")
    assert sch.can_decompose_padding("B", i)
    assert sch.can_decompose_padding(sch.get_block("B"), i)
    assert len(sch.get_loops("B")) == 2
    assert len(sch.trace.insts) == 5  # questions: nothing was changed
    sch = tir.Schedule(elementwise)
    assert not sch.can_decompose_padding("B", sch.get_loops("B")[0])


def test_without_padding_there_is_nothing_to_decompose():
    @T.prim_func
    def inside(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.if_then_else(0 <= vi and vi < 8, A[vi], T.float32(0))

    sch = tir.Schedule(inside)
    assert not sch.can_decompose_padding("B", sch.get_loops("B")[0])
    refused(inside, lambda s: s.decompose_padding("B", s.get_loops("B")[0]), "there is no padding")


def test_refusals():
    def outer(sch):
        sch.decompose_padding("B", sch.get_loops("B")[0])

    refused(elementwise, outer, "expected block B to store a value or padding by a condition")

    @T.prim_func
    def diagonal(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.if_then_else(vi <= vj, A[vi, vj], T.float32(0))

    refused(diagonal, outer, "expected a condition made of bounds on single iterators of block B")

    @T.prim_func
    def modulo(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.if_then_else(vi % 2 == 0, A[vi], T.float32(0))

    refused(modulo, outer, "expected a condition made of bounds on single iterators")

    @T.prim_func
    def reads(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.if_then_else(vi < 4, T.float32(1), A[vi])

    refused(reads, outer, "expected a condition and padding that read no memory, got A")

    @T.prim_func
    def effect(B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.if_then_else(vi < 4, T.call_extern("float32", "f", vi), T.float32(0))

    refused(effect, outer, "expected a value without side effects")

    @T.prim_func
    def two_stores(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                if vi < 4:
                    B[vi] = A[vi]

    refused(two_stores, outer, "expected the body of block B to be one store")

    @T.prim_func
    def overwrites(A: T.Buffer((8,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi // 2] = T.if_then_else(vi < 4, A[vi], T.float32(0))

    refused(overwrites, outer, "has indices that do not tell its iterators apart")

    @T.prim_func
    def two_blocks(
        A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")
    ):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.if_then_else(vi < 4, A[vi], T.float32(0))
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    refused(two_blocks, outer, "expected only loops between loop i and block B")

    def elsewhere(sch):
        sch.decompose_padding("B", sch.get_loops("C")[0])

    @T.prim_func
    def apart(
        A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")
    ):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.if_then_else(vi < 4, A[vi], T.float32(0))
        for j in range(8):
            with T.block("C"):
                vj = T.axis.spatial(8, j)
                C[vj] = B[vj]

    refused(apart, elsewhere, "expected a loop around block B, got loop j")

    @T.prim_func
    def in_place(B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.if_then_else(vi < 4, B[vi], T.float32(0))

    refused(in_place, outer, "reads buffer B, which it also writes")
