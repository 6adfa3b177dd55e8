# SPDX-License-Identifier: Apache-2.0
"""rolling_buffer"""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import matmul, two_stages


@T.prim_func
def pool(A: T.Buffer((12, 12), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((10, 10))
    for i, j, p, q in T.grid(10, 10, 3, 3):
        with T.block("B"):
            vi, vj, vp, vq = T.axis.remap("SSRR", [i, j, p, q])
            with T.init():
                B[vi, vj] = T.min_value("float32")
            B[vi, vj] = T.max(B[vi, vj], A[vi + vp, vj + vq])
    for i, j, p, q in T.grid(8, 8, 3, 3):
        with T.block("C"):
            vi, vj, vp, vq = T.axis.remap("SSRR", [i, j, p, q])
            with T.init():
                C[vi, vj] = T.min_value("float32")
            C[vi, vj] = T.max(C[vi, vj], B[vi + vp, vj + vq])


@T.prim_func
def stencil(A: T.Buffer((24,), "float32"), C: T.Buffer((20,), "float32")):
    B = T.alloc_buffer((24,))
    for i in range(24):
        with T.block("B"):
            vi = T.axis.spatial(24, i)
            B[vi] = A[vi] * 2.0
    for i in range(20):
        with T.block("C"):
            vi = T.axis.spatial(20, i)
            C[vi] = B[vi] + B[vi + 2] + B[vi + 4]


def roll(tile=4, at=0):
    def primitives(sch):
        sch.split(sch.get_loops("C")[0], [None, tile])
        sch.compute_at("B", sch.get_loops("C")[at])
        sch.rolling_buffer("B", 0)

    return primitives


def test_stencil():
    @T.prim_func
    def expected(A: T.Buffer((24,), "float32"), C: T.Buffer((20,), "float32")):
        B = T.alloc_buffer((8,))
        for i_0 in range(5):
            for ax0 in range(8):
                with T.block("B"):
                    vi = T.axis.opaque(24, i_0 * 4 + ax0)
                    T.where(i_0 <= 0 or ax0 >= 4)
                    B[vi % 8] = A[vi] * 2.0
            for i_1 in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(20, i_0 * 4 + i_1)
                    C[vi] = B[vi % 8] + B[(vi + 2) % 8] + B[(vi + 4) % 8]

    apply(stencil, roll(), expected)


@pytest.mark.parametrize("tile", [1, 2, 3, 6, 7, 20])
def test_tiles(tile):
    """Also those that do not divide the extent."""
    if tile == 20:
        refused(stencil, roll(tile), "expected a loop around block B and the blocks that read")
    else:
        apply(stencil, roll(tile))


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_pool_tiled(at):
    def primitives(sch):
        i, j, _, _ = sch.get_loops("C")
        (io, ii), (jo, ji) = sch.split(i, [None, 2]), sch.split(j, [None, 4])
        sch.reorder(io, jo, ii, ji)
        sch.compute_at("B", sch.get_loops("C")[at])
        sch.rolling_buffer("B", 0)

    sch = apply(pool, primitives)
    assert "B = T.alloc_buffer((10, 10))" not in sch.mod.script()


@T.prim_func
def cascade(A: T.Buffer((20,), "float32"), D: T.Buffer((14,), "float32")):
    B = T.alloc_buffer((18,))
    C = T.alloc_buffer((16,))
    for i in range(18):
        with T.block("B"):
            vi = T.axis.spatial(18, i)
            B[vi] = A[vi] + A[vi + 2]
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] * B[vi + 2]
    for i in range(14):
        with T.block("D"):
            vi = T.axis.spatial(14, i)
            D[vi] = C[vi] + C[vi + 2]


def cascaded(*blocks):
    def primitives(sch):
        sch.split(sch.get_loops("D")[0], [None, 2])
        sch.compute_at("C", sch.get_loops("D")[0])
        sch.compute_at("B", sch.get_loops("D")[0])
        for block in blocks:
            sch.rolling_buffer(block, 0)

    return primitives


def test_cascade():
    apply(cascade, cascaded("B"))
    apply(cascade, cascaded("C"))
    apply(cascade, cascaded("C", "B"))
    refused(cascade, cascaded("B", "C"), "block B has the iterator vi, which is not spatial")


def test_compiled():
    """The buffer lives outside of the loop."""
    sch = apply(stencil, roll())
    a, c = np.random.default_rng(0).random(24, "float32"), np.zeros(20, "float32")
    tvm.compile(sch.mod, tvm.testing.host_target())(a, c)
    np.testing.assert_allclose(c, 2 * (a[:20] + a[2:22] + a[4:]), rtol=1e-5)
    placed = tvm.tir.transform.PlanAndUpdateBufferAllocationLocation()(sch.mod)["main"]
    assert [b.name for b in placed.body.block.alloc_buffers] == ["B"]


def test_iterations_are_no_longer_independent():
    def parallel(sch):
        roll()(sch)
        sch.parallel(sch.get_loops("C")[0])

    refused(stencil, parallel, "expected blocks with spatial and reduction iterators, got block B")

    def copied(sch):
        roll()(sch)
        sch.write_at(sch.get_loops("B")[0], "B", 0, "global")

    refused(
        stencil, copied, "expected a block that writes all it covers, but block B leaves to its"
    )


def test_refusals():
    def rolled(sch):
        sch.rolling_buffer("B", 0)

    refused(stencil, rolled, "expected loops around both block B and the blocks that read buffer B")
    refused(stencil, lambda sch: sch.rolling_buffer("B", 1), r"writes \(B\), got 1")
    refused(stencil, lambda sch: sch.rolling_buffer("C", 0), "got C, which is needed after it")

    def no_overlap(sch):
        sch.compute_at("B", sch.get_loops("C")[0])
        sch.rolling_buffer("B", 0)

    refused(two_stages, no_overlap, "along which what one iteration writes overlaps with the next")

    @T.prim_func
    def parallel(A: T.Buffer((10,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((10,))
        for i in T.parallel(8):
            for ax in range(3):
                with T.block("B"):
                    vi = T.axis.spatial(10, i + ax)
                    B[vi] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] + B[vi + 2]

    refused(parallel, rolled, "expected serial loops around block B, got loop i")

    def decomposed(sch):
        sch.decompose_reduction("B", sch.get_loops("B")[2])
        sch.rolling_buffer("B_update", 0)

    refused(pool, decomposed, "not the only block that writes buffer B")

    @T.prim_func
    def unread(A: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    refused(unread, rolled, "expected blocks that read buffer B, got none")

    @T.prim_func
    def read_before(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((10,))
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]
            for ax in range(3):
                with T.block("B"):
                    vi = T.axis.spatial(10, i + ax)
                    B[vi] = A[vi]

    refused(read_before, rolled, "block C reads buffer B before it is written")

    @T.prim_func
    def conditional(A: T.Buffer((10,), "float32"), C: T.Buffer((8,), "float32"), n: T.int32):
        B = T.alloc_buffer((10,))
        for i in range(8):
            if n < i:
                for ax in range(3):
                    with T.block("B"):
                        vi = T.axis.spatial(10, i + ax)
                        B[vi] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    refused(conditional, rolled, "runs only where a condition around it holds")

    @T.prim_func
    def changing(A: T.Buffer((10,), "float32"), C: T.Buffer((8,), "float32")):
        """What B is computed from is another thing in each iteration."""
        B = T.alloc_buffer((10,))
        D = T.alloc_buffer((1,))
        for i in range(8):
            with T.block("D"):
                vi = T.axis.spatial(8, i)
                D[0] = A[vi]
            for ax in range(3):
                with T.block("B"):
                    vi = T.axis.spatial(10, i + ax)
                    B[vi] = A[vi] + D[0]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] + B[vi + 2]

    refused(changing, rolled, "writes buffer D to tell its iterations apart")

    @T.prim_func
    def reads_ahead(A: T.Buffer((10,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((10,))
        for i in range(8):
            for ax in range(3):
                with T.block("B"):
                    vi = T.axis.spatial(10, i + ax)
                    B[vi] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[T.max(vi - 1, 0)]

    refused(reads_ahead, rolled, "not written in the same iteration of loop i")

    @T.prim_func
    def partial(A: T.Buffer((10,), "float32"), C: T.Buffer((8,), "float32")):
        """The sum of an element goes on in the loop of its reader."""
        B = T.alloc_buffer((10,))
        for i in range(8):
            for k in range(2):
                for ax in range(3):
                    with T.block("B"):
                        vi = T.axis.spatial(10, i + ax)
                        vk = T.axis.reduce(2, k)
                        with T.init():
                            B[vi] = 0.0
                        B[vi] = B[vi] + A[vi] * T.Cast("float32", vk)
                with T.block("C"):
                    vi = T.axis.spatial(8, i)
                    C[vi] = B[vi]

    refused(partial, rolled, "is not done with an element in one iteration of loop k")

    @T.prim_func
    def two_buffers(A: T.Buffer((10,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((10,))
        D = T.alloc_buffer((10,))
        for i in range(8):
            for ax in range(3):
                with T.block("B"):
                    vi = T.axis.spatial(10, i + ax)
                    B[vi] = A[vi]
                    D[vi] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] + D[vi]

    refused(two_buffers, rolled, "expected block B to write one buffer")

    @T.prim_func
    def loose(A: T.Buffer((10,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((10,))
        for i in range(8):
            A[0] = 1.0
            for ax in range(3):
                with T.block("B"):
                    vi = T.axis.spatial(10, i + ax)
                    B[vi] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] + B[vi + 2]

    refused(loose, rolled, "statements outside of blocks use buffer A")
    refused(matmul, lambda sch: sch.rolling_buffer("C", 0), "got C, which is needed after it")
