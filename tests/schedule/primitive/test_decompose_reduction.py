# SPDX-License-Identifier: Apache-2.0
"""decompose_reduction"""

import pytest
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import dynamic_sums, matmul_relu, rows, two


def test_inside():
    @T.prim_func
    def expected(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B_init"):
                vi = T.axis.spatial(4, i)
                B[vi] = 0.0
            for k in range(8):
                with T.block("B_update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    B[vi] = B[vi] + A[vi, vk]

    def primitives(sch):
        init = sch.decompose_reduction("B", sch.get_loops("B")[1])
        assert sch.get(init).name_hint == "B_init"

    apply(rows, primitives, expected)


def test_outside():
    @T.prim_func
    def expected(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        for i_init in range(4):
            with T.block("B_init"):
                vi = T.axis.spatial(4, i_init)
                B[vi] = 0.0
        for i, k in T.grid(4, 8):
            with T.block("B_update"):
                vi, vk = T.axis.remap("SR", [i, k])
                B[vi] = B[vi] + A[vi, vk]

    apply(rows, lambda sch: sch.decompose_reduction("B", sch.get_loops("B")[0]), expected)


@pytest.mark.parametrize("depth", range(4))
def test_tiled(depth):
    def primitives(sch):
        i, j, k = sch.get_loops("C")
        (io, ii), (jo, ji), (ko, ki) = (sch.split(x, [None, 3]) for x in (i, j, k))
        sch.reorder(io, jo, ii, ko, ki, ji)
        sch.decompose_reduction("C", sch.get_loops("C")[depth])

    apply(matmul_relu, primitives)


def test_symbolic():
    def primitives(sch):
        sch.split(sch.get_loops("C")[0], [None, 4])
        sch.decompose_reduction("C", sch.get_loops("C")[1])

    apply(dynamic_sums, primitives, sizes={"n": 6})


def test_refusals():
    refused(two, lambda sch: sch.decompose_reduction("B", sch.get_loops("B")[0]), "no init")
    refused(
        matmul_relu,
        lambda sch: sch.decompose_reduction("C", sch.get_loops("D")[0]),
        "expected a loop around block C",
    )

    def below(sch):
        i, k = sch.get_loops("B")
        sch.reorder(k, i)
        sch.decompose_reduction("B", i)

    refused(rows, below, "outside of all loops of the reduction, but loop k")

    def fused(sch):
        fuse = sch.fuse(*sch.get_loops("B"))
        sch.decompose_reduction("B", fuse)

    refused(rows, fused, "spatial and by reduction iterators")
