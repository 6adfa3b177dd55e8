# SPDX-License-Identifier: Apache-2.0
"""blockize: what is below a loop, or several blocks, become the inside of one block."""

import pytest
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import elementwise, matmul_relu, tiled, two


def test_blockize():
    @T.prim_func
    def expected(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        for io, jo in T.grid(2, 2):
            with T.block("B_o"):
                vio, vjo = T.axis.remap("SS", [io, jo])
                for ii, ji in T.grid(4, 4):
                    with T.block("B"):
                        vii, vji = T.axis.remap("SS", [ii, ji])
                        B[vio * 4 + vii, vjo * 4 + vji] = A[vio * 4 + vii, vjo * 4 + vji] * 2.0

    apply(tiled, lambda sch: sch.blockize(sch.get_loops("B")[2]), expected)


def test_blockize_reduction():
    def primitives(sch):
        i, j, k = sch.get_loops("C")
        (io, ii), (ko, ki) = sch.split(i, [None, 4]), sch.split(k, [None, 3])
        sch.reorder(io, ko, ii, j, ki)
        sch.blockize(ii)

    apply(matmul_relu, primitives)


def test_blockize_several_blocks():
    def primitives(sch):
        sch.compute_at("B", sch.get_loops("C")[0])
        block = sch.blockize([sch.get_block("B"), sch.get_block("C")])
        assert sch.get(block).name_hint == "outer_B_C_"

    apply(two, primitives)


def test_refuse_blockize():
    def cut(sch):
        i, j = sch.get_loops("B")
        _, ii = sch.split(i, [None, 5])
        sch.blockize(ii)

    refused(two, cut, "cannot divide the bindings of block B")


def test_blockize_keeps_the_predicate():
    """Of an inner loop that is longer than what it runs over."""

    def primitives(sch):
        sch.blockize(sch.split(sch.get_loops("B")[1], [None, 10])[1])

    apply(elementwise, primitives)


def test_refuse_to_blockize_part_of_what_a_predicate_is_about():
    def primitives(sch):
        sch.blockize(sch.split(sch.get_loops("B")[1], [None, 5])[1])

    refused(elementwise, primitives, "cannot divide the bindings of block B")


def test_blockize_below_a_loop_that_does_not_start_at_0():
    def primitives(sch):
        first, second = sch.loop_partition(sch.get_loops("B")[1], [3])
        sch.blockize(second)
        sch.blockize(first)

    apply(elementwise, primitives)


@pytest.mark.parametrize("offset", [8, 5])
def test_blockize_part_of_a_buffer(offset):
    """Bindings that do not start at 0, at a multiple of what goes inside and elsewhere."""

    @T.prim_func
    def before(A: T.Buffer((24, 4), "float32"), B: T.Buffer((24, 4), "float32")):
        for io, ii, j in T.grid(4, 4, 4):
            with T.block("B"):
                vi = T.axis.spatial((offset, offset + 16), io * 4 + ii + offset)
                vj = T.axis.spatial(4, j)
                B[vi, vj] = A[vi, vj] * 2.0

    apply(before, lambda sch: sch.blockize(sch.get_loops("B")[1]))
