# SPDX-License-Identifier: Apache-2.0
"""pad_einsum"""

from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import elementwise, matmul, two_stages


def test_matmul():
    @T.prim_func
    def expected(
        A: T.Buffer((16, 12), "float32"),
        B: T.Buffer((12, 8), "float32"),
        C: T.Buffer((16, 8), "float32"),
    ):
        A_pad = T.alloc_buffer((16, 16))
        B_pad = T.alloc_buffer((16, 10))
        C_pad = T.alloc_buffer((16, 10))
        for ax0, ax1 in T.grid(16, 16):
            with T.block("A_pad"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                A_pad[v0, v1] = T.if_then_else(v1 < 12, A[v0, v1], T.float32(0))
        for ax0, ax1 in T.grid(16, 10):
            with T.block("B_pad"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                B_pad[v0, v1] = T.if_then_else(v0 < 12 and v1 < 8, B[v0, v1], T.float32(0))
        for i, j, k in T.grid(16, 10, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_pad[vi, vj] = 0.0
                C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vi, vk] * B_pad[vk, vj]
        for ax0, ax1 in T.grid(16, 8):
            with T.block("C_pad"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                C[v0, v1] = C_pad[v0, v1]

    apply(matmul, lambda sch: sch.pad_einsum("C", [4, 5, 8]), expected)


def test_scheduled_afterwards():
    def primitives(sch):
        sch.pad_einsum("C", [5, 3, 5])
        i, j, k = sch.get_loops("C")
        assert [int(sch.get(x).extent) for x in (i, j, k)] == [20, 9, 15]
        (io, ii), (ko, ki) = sch.split(i, [None, 5]), sch.split(k, [None, 5])
        sch.reorder(io, ko, ii, j, ki)
        sch.compute_at("A_pad", ko)
        sch.reverse_compute_at("C_pad", io)

    apply(matmul, primitives)


def test_nothing_to_pad():
    apply(matmul, lambda sch: sch.pad_einsum("C", [1, 4, 6]), matmul)


def test_elementwise():
    apply(elementwise, lambda sch: sch.pad_einsum("B", [7, 5]))
    apply(two_stages, lambda sch: (sch.pad_einsum("B", [7, 5]), sch.pad_einsum("C", [7, 1])))


def test_symbolic():
    @T.prim_func
    def before(a: T.handle, b: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 6))
        B = T.match_buffer(b, (n,))
        C = T.match_buffer(c, (6,))
        for i, k in T.grid(6, n):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vk, vi] * B[vk]

    for n in (1, 8, 13):
        apply(before, lambda sch: sch.pad_einsum("C", [1, 8]), sizes={"n": n})


def test_part_of_a_buffer():
    """What lies behind the domain is zero in the copy, not what the buffer has there; a constant
    index stays."""

    @T.prim_func
    def before(A: T.Buffer((3, 20), "int32"), B: T.Buffer((2,), "int32")):
        for i, k in T.grid(1, 10):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[2, vk]

    apply(before, lambda sch: sch.pad_einsum("B", [2, 16]))


def test_refusals():
    def pad(*padding):
        return lambda sch: sch.pad_einsum("C", list(padding))

    refused(matmul, pad(4, 4), "expected a padding for each of the 3 iterators of block C, got 2")
    refused(matmul, pad(4, 0, 4), "expected positive paddings, got 0")

    def split(sch):
        sch.split(sch.get_loops("C")[0], [None, 4])
        sch.pad_einsum("C", [4, 4, 4])

    refused(matmul, split, "expected the iterators of block C to be the loops around it")

    def shared(sch):
        sch.compute_at("B", sch.get_loops("C")[0])
        sch.pad_einsum("C", [3, 3])

    refused(two_stages, shared, "expected the iterators of block C to be the loops around it")

    def parallel(sch):
        sch.parallel(sch.get_loops("C")[0])
        sch.pad_einsum("C", [5, 1, 1])

    refused(matmul, parallel, "expected a serial loop, got loop i, which is parallel")

    def decomposed(sch):
        sch.decompose_reduction("C", sch.get_loops("C")[2])
        sch.pad_einsum("C_update", [5, 1, 1])

    refused(matmul, decomposed, "not the only block that writes buffer C")

    def twice(sch):
        sch.pad_einsum("C", [4, 5, 8])
        sch.pad_einsum("A_pad", [3, 3])

    refused(matmul, twice, "expected block A_pad to read under no condition, got T.if_then_else")

    @T.prim_func
    def stencil(A: T.Buffer((9,), "float32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi + 1]

    refused(stencil, pad(3), r"to be constants and different iterators of block C, got vi \+ 1")

    @T.prim_func
    def diagonal(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi, vi]

    refused(diagonal, pad(3), "constants and different iterators of block C, got vi")

    @T.prim_func
    def twice(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + A[vj, vi]

    refused(twice, pad(3, 3), "access buffer A with one set of indices, got v[ij] and v[ij]")

    @T.prim_func
    def not_one_store(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                if vi < 4:
                    C[vi] = A[vi]

    refused(not_one_store, pad(3), "expected the body of block C to be one store")

    @T.prim_func
    def allocates(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                B = T.alloc_buffer((1,))
                B[0] = A[vi]
                C[vi] = B[0]

    refused(allocates, pad(3), "expected block C not to allocate or match buffers")

    @T.prim_func
    def effect(C: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = T.call_extern("int32", "f", vi)

    refused(effect, pad(3), "expected a value without side effects")

    @T.prim_func
    def maximum(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
        for k in range(8):
            with T.block("C"):
                vk = T.axis.reduce(8, k)
                with T.init():
                    C[0] = T.min_value("float32")
                C[0] = T.max(C[0], A[vk])

    refused(maximum, pad(3), "expected zeros in the padding of iterator vk to leave the result")

    @T.prim_func
    def factor(A: T.Buffer((8,), "float32"), s: T.Buffer((1,), "float32"), C: T.Buffer((1,))):
        """0 * s is no zero if s is infinite."""
        for k in range(8):
            with T.block("C"):
                vk = T.axis.reduce(8, k)
                with T.init():
                    C[0] = 0.0
                C[0] = C[0] + A[vk] * s[0]

    refused(factor, pad(3), "but it combines")

    @T.prim_func
    def unknown(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
        for k in range(8):
            with T.block("C"):
                vk = T.axis.reduce(8, k)
                with T.init():
                    C[0] = 0.0
                C[0] = C[0] * 2.0 + A[vk]

    refused(unknown, pad(3), "expected a known combination")

    @T.prim_func
    def overwrites(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[0] = A[vi]

    refused(overwrites, pad(3), "expected iterator vi to be an index of buffer C")


# ---- pad_edge ------------------------------------------------------------------------------------
def test_edge():
    """Inlined, what is read beyond the domain is its last element; B needs no copy."""

    @T.prim_func
    def expected(
        A: T.Buffer((16, 12), "float32"),
        B: T.Buffer((12, 8), "float32"),
        C: T.Buffer((16, 8), "float32"),
    ):
        C_pad = T.alloc_buffer((18, 8))
        for i, j, k in T.grid(18, 8, 12):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_pad[vi, vj] = 0.0
                C_pad[vi, vj] = C_pad[vi, vj] + A[T.min(vi, 15), vk] * B[vk, vj]
        for ax0, ax1 in T.grid(16, 8):
            with T.block("C_pad"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                C[v0, v1] = C_pad[v0, v1]

    def primitives(sch):
        sch.pad_edge("C", [6, 1, 1])
        sch.compute_inline("A_pad")

    apply(matmul, primitives, expected)


def test_edge_of_split_loops():
    """Only the loops of iterators that grow are looked at, and only what they index is copied."""

    @T.prim_func
    def panels(
        A: T.Buffer((7, 6), "float32"),
        B: T.Buffer((2, 6, 4), "float32"),
        C: T.Buffer((7, 8), "float32"),
    ):
        for i, j, k in T.grid(7, 8, 6):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj // 4, vk, vj % 4]

    def primitives(sch):
        sch.split(sch.get_loops("C")[1], [None, 4])
        sch.pad_edge("C", [4, 1, 1])
        assert [int(sch.get(x).extent) for x in sch.get_loops("C")] == [8, 2, 4, 6]

    apply(panels, primitives)


def test_edge_refusals():
    def pad(*padding):
        return lambda sch: sch.pad_edge("C", list(padding))

    refused(matmul, pad(1, 1, 5), "expected a padding of 1 for iterator vk, which is reduced")

    def split(sch):
        sch.split(sch.get_loops("C")[0], [None, 4])
        sch.pad_edge("C", [6, 1, 1])

    refused(
        matmul, split, "expected the iterators of block C that are padded to be loops around it"
    )
