# SPDX-License-Identifier: Apache-2.0
"""fuse_reduction_epilogue"""

import pytest
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import matmul, two_stages


def fuse(sch):
    sch.fuse_reduction_epilogue("B", "C")


def test_matmul_with_addition():
    @T.prim_func
    def before(
        A: T.Buffer((16, 12), "float32"),
        B: T.Buffer((12, 8), "float32"),
        C: T.Buffer((16, 8), "float32"),
        D: T.Buffer((16, 8), "float32"),
    ):
        product = T.alloc_buffer((16, 8))
        for i, j, k in T.grid(16, 8, 12):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    product[vi, vj] = 0.0
                product[vi, vj] = product[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(16, 8):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = product[vi, vj] + C[vi, vj]

    @T.prim_func
    def expected(
        A: T.Buffer((16, 12), "float32"),
        B: T.Buffer((12, 8), "float32"),
        C: T.Buffer((16, 8), "float32"),
        D: T.Buffer((16, 8), "float32"),
    ):
        for i, j, k in T.grid(16, 8, 12):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    D[vi, vj] = C[vi, vj]
                D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]

    apply(before, lambda sch: sch.fuse_reduction_epilogue("product", "D"), expected)

    def tiled(sch):
        i, j, k = sch.get_loops("product")
        (io, ii), (ko, ki) = sch.split(i, [None, 5]), sch.split(k, [None, 4])
        sch.reorder(io, ko, ii, j, ki)
        sch.fuse_reduction_epilogue("product", "D")
        sch.decompose_reduction("product", ko)

    apply(before, tiled)


@T.prim_func
def transposed(
    A: T.Buffer((4, 6, 5), "int32"), bias: T.Buffer((6,), "int32"), C: T.Buffer((6, 4), "int32")
):
    B = T.alloc_buffer((4, 6), "int32")
    for i, j, k in T.grid(4, 6, 5):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[vi, vj] = 0
            B[vi, vj] = B[vi, vj] + A[vi, vj, vk]
    for i, j in T.grid(6, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = bias[vi] * 2 + B[vj, vi]


def test_transposed():
    apply(transposed, fuse)


def test_other_reductions():
    @T.prim_func
    def maximum(A: T.Buffer((4, 5), "float32"), C: T.Buffer((4,), "float32")):
        B = T.alloc_buffer((4,))
        for i, k in T.grid(4, 5):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.min_value("float32")
                B[vi] = T.max(B[vi], A[vi, vk])
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = T.max(B[vi], T.float32(0.25))

    apply(maximum, fuse)


def program(value, dtype="float32", more=""):
    """A sum over rows of A, and C, which is the value."""
    import tvm

    source = f"""
@T.prim_func
def before(A: T.Buffer((4, 5)), D: T.Buffer((4,)), C: T.Buffer((4,), "{dtype}")):
    B = T.alloc_buffer((4,))
    for i, k in T.grid(4, 5):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
    {more}
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = {value}
"""
    return tvm.script.from_source(source, extra_vars={"T": T})


@pytest.mark.parametrize("value, dtype", [
    ("T.max(B[vi], T.float32(0))", "float32"), ("B[vi] * D[vi]", "float32"),
    ("B[vi] + B[vi]", "float32"), ("B[vi] + B[3 - vi]", "float32"), ("D[vi] - B[vi]", "float32"),
    ("T.Cast('float16', B[vi] + D[vi])", "float16"),
])  # fmt: skip
def test_refuse_value(value, dtype):
    refused(program(value, dtype), fuse, "expected block C to combine buffer B with something else")


def test_refuse_order():
    apply(program("B[vi] + D[vi]"), fuse)
    more = """for i in range(4):
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            D[vi] = A[vi, 0]"""
    refused(
        program("B[vi] + D[vi]", more=more), fuse, "block D writes buffer D, which block C reads"
    )
    more = more.replace("D[vi] = A[vi, 0]", "D[vi] = C[vi]")
    refused(
        program("B[vi] + 1.0", more=more), fuse, "block D may read buffer C before block C writes"
    )
    more = more.replace("D[vi] = C[vi]", "D[vi] = B[vi]")
    refused(program("B[vi] + 1.0", more=more), fuse, "block C to be the only reader of buffer B")


def test_refusals():
    refused(transposed, lambda sch: sch.fuse_reduction_epilogue("C", "B"), "block C has no init")
    refused(transposed, lambda sch: sch.fuse_reduction_epilogue("B", "B"), "expected another block")
    refused(two_stages, lambda sch: sch.fuse_reduction_epilogue("B", "C"), "block B has no init")
    refused(
        program("B[vi] + T.call_extern('float32', 'f', vi)"), fuse, "a value without side effects"
    )
    refused(program("D[T.Cast('int32', B[vi])]"), fuse, "expected block C to combine buffer B")

    @T.prim_func
    def part(A: T.Buffer((4, 5), "float32"), C: T.Buffer((3,), "float32")):
        B = T.alloc_buffer((4,))
        for i, k in T.grid(4, 5):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]
        for i in range(3):
            with T.block("C"):
                vi = T.axis.spatial(3, i)
                C[vi] = B[vi] + 1.0

    refused(part, fuse, "expected block C to read every element that block B writes")

    @T.prim_func
    def output(A: T.Buffer((4, 5), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,))):
        for i, k in T.grid(4, 5):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi] + 1.0

    refused(output, fuse, "got B, which is needed after it")

    @T.prim_func
    def first_wins(
        A: T.Buffer((4, 5), "float32"), C: T.Buffer((4,), "int32"), D: T.Buffer((4,), "float32")
    ):
        I = T.alloc_buffer((4,), "int32")
        B = T.alloc_buffer((4,))
        for i, k in T.grid(4, 5):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    I[vi] = -1
                    B[vi] = T.min_value("float32")
                better: T.bool = B[vi] >= A[vi, vk]
                index: T.int32 = T.Select(better, I[vi], vk)
                value: T.float32 = T.Select(better, B[vi], A[vi, vk])
                I[vi] = index
                B[vi] = value
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = I[vi] + 1

    refused(first_wins, fuse, "expected block B to reduce one value, in any order")

    @T.prim_func
    def two_stores(A: T.Buffer((4, 5), "float32"), C: T.Buffer((4,), "float32")):
        B = T.alloc_buffer((4,))
        for i, k in T.grid(4, 5):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                if vi < 4:
                    C[vi] = B[vi] + 1.0

    refused(two_stores, fuse, "expected a block whose body is one store, got block C")

    @T.prim_func
    def not_apart(A: T.Buffer((4, 5), "float32"), C: T.Buffer((4, 2), "float32")):
        B = T.alloc_buffer((4,))
        for i, k in T.grid(4, 5):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]
        for i, j in T.grid(4, 2):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi] + 1.0

    refused(not_apart, fuse, "indices that do not tell its iterators apart")

    @T.prim_func
    def before_it(A: T.Buffer((4, 5), "float32"), C: T.Buffer((4,), "float32")):
        B = T.alloc_buffer((4,))
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi] + 1.0
        for i, k in T.grid(4, 5):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]

    refused(before_it, fuse, "expected block C after block B")

    def decomposed(sch):
        sch.decompose_reduction("C", sch.get_loops("C")[2])
        sch.fuse_reduction_epilogue("C_update", "C_init")

    refused(matmul, decomposed, "block C_update has no init")
