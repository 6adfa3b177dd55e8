# SPDX-License-Identifier: Apache-2.0
"""merge: nests that follow each other become one."""

from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import stencil, two_stages


def merge(depth):
    return lambda sch: sch.merge(sch.get_loops("B")[depth], sch.get_loops("C")[depth])


def test_all_loops_up_to_where_the_nests_meet():
    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
        B = T.alloc_buffer((16, 8))
        for i_m, j_m in T.grid(16, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i_m, j_m])
                B[vi, vj] = A[vi, vj] * 2.0
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i_m, j_m])
                C[vi, vj] = B[vi, vj] + 1.0

    apply(two_stages, merge(1), expected)


def test_outer_loops_alone():
    sch = apply(two_stages, merge(0))
    assert sch.get(sch.get_loops("B")[0]).same_as(sch.get(sch.get_loops("C")[0]))
    assert not sch.get(sch.get_loops("B")[1]).same_as(sch.get(sch.get_loops("C")[1]))


def test_what_a_later_iteration_computes_is_not_used_before():
    @T.prim_func
    def backwards(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2.0
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[7 - vi]

    refused(backwards, merge(0), "expected values of B to be used in the iteration")
    refused(stencil, merge(0), "expected loops over one range")
