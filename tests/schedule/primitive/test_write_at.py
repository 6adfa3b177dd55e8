# SPDX-License-Identifier: Apache-2.0
"""write_at: what a block writes to a buffer in one iteration of a loop is copied to it there."""

from tvm.script import tir as T

from tests.schedule.checking import apply
from tests.schedule.programs import elementwise, matmul


def test_write_at():
    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
        B_local = T.alloc_buffer((16, 8), scope="local")
        for i in range(16):
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B_local[vi, vj] = A[vi, vj] * 2.0
            with T.block("B_local"):
                v0 = T.axis.spatial(16, i)
                T.reads(B_local[v0, 0:8])
                T.writes(B[v0, 0:8])
                T.block_attr({"auto_copy": True})
                for ax0 in range(8):
                    B[v0, ax0] = B_local[v0, ax0]

    apply(elementwise, lambda sch: sch.write_at(sch.get_loops("B")[0], "B", 0, "local"), expected)


def test_write_below_a_reduction():
    """Parts of a sum are copied, too; the last copy has all of it."""

    def primitives(sch):
        i, j, k = sch.get_loops("C")
        sch.reorder(k, i, j)
        sch.write_at(i, "C", 0, "local")

    apply(matmul, primitives)
