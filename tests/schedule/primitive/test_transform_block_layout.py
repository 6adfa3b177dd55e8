# SPDX-License-Identifier: Apache-2.0
"""transform_block_layout: a block runs over other iterators, one to one with those it had."""

from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import rows, two


def test_transform_block_layout():
    @T.prim_func
    def expected(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        B = T.alloc_buffer((16, 16))
        for ax0 in range(256):
            with T.block("B"):
                v0 = T.axis.spatial(256, ax0)
                B[v0 // 16, v0 % 16] = A[v0 // 16, v0 % 16] * 2.0
        for i, j in T.grid(16, 16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + 1.0

    apply(two, lambda sch: sch.transform_block_layout("B", lambda i, j: (i * 16 + j,)), expected)
    apply(rows, lambda sch: sch.transform_block_layout("B", lambda i, k: (k // 4, k % 4, i)))


def test_indices_are_as_simple_as_the_new_iterators_allow():
    @T.prim_func
    def blocks(A: T.Buffer((4, 5, 8), "float32"), B: T.Buffer((32, 5), "float32")):
        for c, i in T.grid(32, 5):
            with T.block("B"):
                vc, vi = T.axis.remap("SS", [c, i])
                B[vc, vi] = A[vc // 8, vi, vc % 8]

    @T.prim_func
    def expected(A: T.Buffer((4, 5, 8), "float32"), B: T.Buffer((32, 5), "float32")):
        for ax0, ax1, ax2 in T.grid(4, 8, 5):
            with T.block("B"):
                v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
                B[v0 * 8 + v1, v2] = A[v0, v2, v1]

    apply(
        blocks,
        lambda sch: sch.transform_block_layout("B", lambda c, i: (c // 8, c % 8, i)),
        expected,
    )


def test_refuse_transform_block_layout():
    refused(
        rows,
        lambda sch: sch.transform_block_layout("B", lambda i, k: (i * 8 + k,)),
        "not to mix spatial and reduction",
    )

    def split(sch):
        sch.split(sch.get_loops("B")[0], [None, 4])
        sch.transform_block_layout("B", lambda i, j: (j, i))

    refused(two, split, "to be the loops around it")
