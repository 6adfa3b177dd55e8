# SPDX-License-Identifier: Apache-2.0
"""read_at, also together with write_at."""

import numpy as np
import tvm
import tvm.testing
from tvm.script import tir as T

from tests.schedule.checking import apply, arrays, refused
from tests.schedule.programs import elementwise, matmul, shared_loop, two_stages


def test_read_at():
    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
        A_shared = T.alloc_buffer((16, 8), scope="shared")
        for i in range(16):
            with T.block("A_shared"):
                v0 = T.axis.spatial(16, i)
                T.reads(A[v0, 0:8])
                T.writes(A_shared[v0, 0:8])
                T.block_attr({"auto_copy": True})
                for ax0 in range(8):
                    A_shared[v0, ax0] = A[v0, ax0]
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A_shared[vi, vj] * 2.0

    def primitives(sch):
        block = sch.read_at(sch.get_loops("B")[0], "B", 0, "shared")
        assert sch.get(block).name_hint == "A_shared"

    apply(elementwise, primitives, expected)


def test_threads_share_the_copy():
    """What lies in shared memory belongs to all threads: the tile is that of the kernel's block."""

    def primitives(sch):
        i, j, k = sch.get_loops("C")
        (io, it), (ko, ki) = sch.split(i, [None, 8]), sch.split(k, [None, 4])
        sch.reorder(io, it, ko, j, ki)
        sch.bind(io, "blockIdx.x")
        sch.bind(it, "threadIdx.x")
        block = sch.get(sch.read_at(ko, "C", 0, "shared"))
        assert [int(dom.extent) for dom in block.reads[0].region] == [8, 4]
        assert len(block.iter_vars) == 2

    apply(matmul, primitives)


def test_matmul_tiled():
    def primitives(sch):
        i, j, k = sch.get_loops("C")
        (io, ii), (ko, ki) = sch.split(i, [None, 5]), sch.split(k, [None, 4])
        sch.reorder(io, ko, ii, j, ki)
        sch.read_at(ko, "C", 0, "shared")
        sch.read_at(ko, "C", "B", "shared")
        sch.write_at(io, "C", 0, "local")

    apply(matmul, primitives)


def test_windows_beyond_the_buffer():
    @T.prim_func
    def before(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i in range(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                B[vi] = T.if_then_else(1 <= vi and vi < 9, A[vi - 1] + A[vi + 1], T.float32(0))

    def primitives(sch):
        io, _ = sch.split(sch.get_loops("B")[0], [None, 4])
        sch.read_at(io, "B", 0, "local")

    apply(before, primitives)


def test_symbolic():
    @T.prim_func
    def before(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 4))
        B = T.match_buffer(b, (n, 4))
        for i, j in T.grid(n, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[n - 1 - vi, vj] + 1.0

    def primitives(sch):
        i, _ = sch.get_loops("B")
        sch.read_at(i, "B", 0, "local")
        sch.write_at(i, "B", 0, "local")

    apply(before, primitives, sizes={"n": 5})


def test_between_stages():
    def primitives(sch):
        sch.compute_at("B", sch.get_loops("C")[0])
        i = sch.get_loops("C")[0]
        sch.read_at(i, "C", 0, "local")
        sch.write_at(i, "B", 0, "local")

    apply(two_stages, primitives)


def test_refusals():
    def read(loop_of, block, index=0):
        return lambda sch: sch.read_at(sch.get_loops(loop_of)[0], block, index, "local")

    def write(loop_of, block, index=0):
        return lambda sch: sch.write_at(sch.get_loops(loop_of)[0], block, index, "local")

    refused(two_stages, read("C", "B"), "expected a loop around block B, got loop i")
    refused(two_stages, write("C", "B"), "expected a loop around block B, got loop i")
    refused(two_stages, read("B", "B", 1), r"reads \(A\), got 1")
    refused(two_stages, write("B", "B", 1), r"writes \(B\), got 1")

    @T.prim_func
    def in_place(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = A[vi] + 1.0

    refused(in_place, read("A", "A"), "block A writes buffer A where block A is to read the copy")
    refused(in_place, write("A", "A"), "expected a block that only writes buffer A")

    @T.prim_func
    def nested(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4))):
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + 1.0

    refused(nested, read("C", "C"), "block B writes buffer B where block C is to read the copy")
    refused(nested, write("B", "B"), "block C reads buffer B before it is copied")

    @T.prim_func
    def strided(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj * 2] = A[vi, vj]

    refused(
        strided, write("B", "B"), "cannot tell exactly which part of buffer B block B writes in"
    )

    @T.prim_func
    def loose(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        A[0] = 1.0
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    refused(loose, read("B", "B"), "statements outside of blocks use buffer A")

    @T.prim_func
    def pointer(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = T.call_extern("float32", "f", A.data)

    refused(pointer, read("B", "B"), "uses buffer A through its pointer")

    def decomposed(sch):
        i, j, k = sch.get_loops("C")
        sch.decompose_reduction("C", k)
        sch.write_at(i, "C_update", 0, "local")

    refused(matmul, decomposed, "not the only block that writes buffer C")
    apply(shared_loop, read("C", "C"))


def test_a_copy_under_a_condition_compiles():
    """What is read of the input lies beyond it for some iterations."""

    def primitives(sch):
        sch.pad_einsum("B", [32, 1])
        sch.read_at(sch.get_loops("A_pad")[0], "A_pad", 0, "global")

    sch = apply(elementwise, primitives)
    a, b = arrays(elementwise)
    tvm.compile(sch.mod, target=tvm.testing.host_target())["elementwise"](a, b)
    np.testing.assert_allclose(b, a * 2)
