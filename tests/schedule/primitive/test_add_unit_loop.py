# SPDX-License-Identifier: Apache-2.0
"""add_unit_loop: a loop that runs once around a block or a loop."""

from tvm.script import tir as T

from tests.schedule.checking import apply
from tests.schedule.programs import elementwise


def test_around_a_block_and_a_loop():
    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
        for _, i, j, _ in T.grid(1, 16, 8, 1):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

    def primitives(sch):
        sch.add_unit_loop("B")
        sch.add_unit_loop(sch.get_loops("B")[0])

    apply(elementwise, primitives, expected)


def test_the_loop_has_the_type_of_what_it_is_around():
    @T.prim_func
    def wide(A: T.Buffer((T.int64(4),), "float32")):
        for i in range(T.int64(4)):
            with T.block("A"):
                v = T.axis.spatial(T.int64(4), i)
                A[v] = 1.0

    sch = apply(wide, lambda sch: sch.add_unit_loop("A"))
    assert [sch.get(x).loop_var.dtype for x in sch.get_loops("A")] == ["int64", "int64"]
