# SPDX-License-Identifier: Apache-2.0
"""rfactor"""

import numpy as np
import pytest
from tvm import tir
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import dynamic_sums, matmul_relu, rows, two


def test_rfactor():
    @T.prim_func
    def expected(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        B_rf = T.alloc_buffer((4, 4))
        for i, k_0, k_1 in T.grid(4, 2, 4):
            with T.block("B_rf"):
                vk_1, vi, vk_0 = T.axis.remap("SSR", [k_1, i, k_0])
                with T.init():
                    B_rf[vi, vk_1] = 0.0
                B_rf[vi, vk_1] = B_rf[vi, vk_1] + A[vi, vk_0 * 4 + vk_1]
        for i, k_1 in T.grid(4, 4):
            with T.block("B"):
                vk_1, vi = T.axis.remap("RS", [k_1, i])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + B_rf[vi, vk_1]

    def primitives(sch):
        _, ki = sch.split(sch.get_loops("B")[1], [None, 4])
        block = sch.rfactor(ki, 1)
        assert sch.get(block).name_hint == "B_rf"

    apply(rows, primitives, expected)


def test_rfactor_of_the_only_loop_stores_plainly():
    """No reduction is left in the first block; an iterator that is not made of the loop stays."""

    @T.prim_func
    def before(A: T.Buffer((4, 8, 6), "float32"), B: T.Buffer((4,), "float32")):
        for i, k, m in T.grid(4, 8, 6):
            with T.block("B"):
                vm, vi, vk = T.axis.remap("RSR", [m, i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk, vm]

    @T.prim_func
    def expected(A: T.Buffer((4, 8, 6), "float32"), B: T.Buffer((4,), "float32")):
        B_rf = T.alloc_buffer((8, 4))
        B_rf_rf = T.alloc_buffer((6, 8, 4))
        for i, k, m in T.grid(4, 8, 6):
            with T.block("B_rf_rf"):
                vm, vk, vi = T.axis.remap("SSS", [m, k, i])
                B_rf_rf[vm, vk, vi] = A[vi, vk, vm]
        for i, k, m in T.grid(4, 8, 6):
            with T.block("B_rf"):
                vm, vk, vi = T.axis.remap("RSS", [m, k, i])
                with T.init():
                    B_rf[vk, vi] = 0.0
                B_rf[vk, vi] = B_rf[vk, vi] + B_rf_rf[vm, vk, vi]
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vk, vi = T.axis.remap("RS", [k, i])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + B_rf[vk, vi]

    def primitives(sch):
        rf = sch.rfactor(sch.get_loops("B")[1], 0)
        assert [str(v.var.name) for v in sch.get(rf).iter_vars] == ["vk", "vm", "vi"]
        sch.rfactor(sch.get_loops(rf)[2], 0)

    apply(before, primitives, expected)


@pytest.mark.parametrize(
    "factor, which, axis", [(4, 0, 0), (4, 1, 1), (5, 0, -1), (5, 1, -2), (9, 1, 0)]
)
def test_rfactor_predicated(factor, which, axis):
    def primitives(sch):
        loops = sch.split(sch.get_loops("B")[1], [None, factor])
        sch.rfactor(loops[which], axis)

    apply(rows, primitives)


def test_rfactor_symbolic():
    @T.prim_func
    def before(a: T.handle, B: T.Buffer((4,), "float32")):
        n = T.int32()
        A = T.match_buffer(a, (4, n))
        for i, k in T.grid(4, n):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(-1e30)
                B[vi] = T.max(B[vi], A[vi, vk])

    def primitives(sch):
        loops = sch.split(sch.get_loops("B")[1], [None, 4])
        sch.rfactor(loops[1], 0)

    for n in (1, 3, 4, 9):
        apply(before, primitives, sizes={"n": n})


def test_rfactor_whole_loop_and_matmul():
    apply(matmul_relu, lambda sch: sch.rfactor(sch.get_loops("C")[2], 2))
    apply(dynamic_sums, lambda sch: sch.rfactor(sch.get_loops("C")[1], 0), sizes={"n": 3})


@T.prim_func
def argmax(
    I: T.Buffer((4, 24), "int32"), V: T.Buffer((4, 24), "float32"),
    MI: T.Buffer((4,), "int32"), MV: T.Buffer((4,), "float32"),
):  # fmt: skip
    for i, k in T.grid(4, 24):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                MI[vi] = -1
                MV[vi] = T.min_value("float32")
            v_i: T.int32 = T.Select(MV[vi] >= V[vi, vk], MI[vi], I[vi, vk])
            v_v: T.float32 = T.Select(MV[vi] >= V[vi, vk], MV[vi], V[vi, vk])
            MI[vi] = v_i
            MV[vi] = v_v


def test_rfactor_argmax():
    def outer(sch):
        loops = sch.split(sch.get_loops("M")[1], [None, 6])
        sch.rfactor(loops[0], 1)

    def inner(sch):
        loops = sch.split(sch.get_loops("M")[1], [None, 6])
        sch.rfactor(loops[1], 1)

    sch = apply(argmax, outer)
    values = np.tile(np.array([[1, 3, 2, 3, 3, 0]], "float32"), (4, 4))
    index = np.tile(np.arange(24, dtype="int32"), (4, 1))
    got_i, got_v = np.zeros(4, "int32"), np.zeros(4, "float32")
    tir.interpret(sch.mod["main"])(index, values, got_i, got_v)
    np.testing.assert_array_equal(got_i, values.argmax(1))
    refused(argmax, inner, "the outermost loop of the reduction")
    apply(argmax, lambda sch: sch.rfactor(sch.split(sch.get_loops("M")[1], [None, 1])[1], 1))


@pytest.mark.parametrize("kind", ["sum_product", "two_sums"])
def test_rfactor_other_reducers(kind):
    @T.prim_func
    def sum_product(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 1.0
                B[vi] = A[vi, vk] * B[vi]

    @T.prim_func
    def two_sums(
        A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")
    ):
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                    C[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]
                C[vi] = C[vi] + A[vi, vk] * A[vi, vk]

    apply(locals()[kind], lambda sch: sch.rfactor(sch.get_loops("B")[1], 0))


def test_refusals():
    refused(rows, lambda sch: sch.rfactor(sch.get_loops("B")[0], 0), "only reduces, got loop i")
    refused(rows, lambda sch: sch.rfactor(sch.get_loops("B")[1], 2), "factor_axis from -2 to 1")
    refused(two, lambda sch: sch.rfactor(sch.get_loops("B")[1], 0), "no init")

    @T.prim_func
    def unknown(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] * 0.5 + A[vi, vk]

    @T.prim_func
    def no_identity(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 1.0
                B[vi] = B[vi] + A[vi, vk]

    for before in (unknown, no_identity):
        refused(before, lambda sch: sch.rfactor(sch.get_loops("B")[1], 0), "a known combination")
