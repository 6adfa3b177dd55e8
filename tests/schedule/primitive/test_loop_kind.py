# SPDX-License-Identifier: Apache-2.0
"""parallel, vectorize, unroll."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import tir
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import dynamic, elementwise, matmul, shared_loop, two_stages


def test_kinds():
    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
        for i in T.parallel(16):
            for j_0 in T.unroll(2):
                for j_1 in T.vectorized(4):
                    with T.block("B"):
                        vi = T.axis.spatial(16, i)
                        vj = T.axis.spatial(8, j_0 * 4 + j_1)
                        B[vi, vj] = A[vi, vj] * 2.0

    def primitives(sch):
        i, j = sch.get_loops("B")
        j0, j1 = sch.split(j, [2, 4])
        sch.parallel(i)
        sch.unroll(j0)
        sch.vectorize(j1)

    apply(elementwise, primitives, expected)


def test_fused_and_predicated_loops_are_independent():
    def primitives(sch):
        i, j, k = sch.get_loops("C")
        fused = sch.fuse(i, j)
        outer, inner = sch.split(fused, [None, 12])
        sch.parallel(outer)
        sch.vectorize(inner)

    apply(matmul, primitives)


@pytest.mark.parametrize("primitive", ["parallel", "vectorize"])
def test_reduction_is_not_parallel(primitive):
    def primitives(sch):
        getattr(sch, primitive)(sch.get_loops("C")[2])

    text = refused(matmul, primitives, "the reduction iterator vk of block C")
    assert "for i, j, k in T.grid(16, 8, 12):\n" in text and "^^^" in text


def test_loop_around_two_blocks():
    """The second block reads what the first wrote in the same iteration."""

    @T.prim_func
    def chain(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
        B = T.alloc_buffer((16, 8))
        for i in range(16):
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * 2.0
            for j in range(8):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj] + 1.0

    apply(chain, lambda sch: sch.parallel(sch.get_loops("B")[0]))

    def vectorize(sch):
        sch.vectorize(sch.get_loops("B")[0])

    refused(shared_loop, vectorize, "expected values of B to be used in the iteration")


def test_decomposed_reduction_is_parallel_over_rows():
    @T.prim_func
    def decomposed(A: T.Buffer((16, 12), "float32"), C: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("init"):
                vi = T.axis.spatial(16, i)
                C[vi] = 0.0
            for k in range(12):
                with T.block("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + A[vi, vk]

    apply(decomposed, lambda sch: sch.parallel(sch.get_loops("init")[0]))
    refused(
        decomposed,
        lambda sch: sch.vectorize(sch.get_loops("update")[1]),
        "the reduction iterator vk of block update",
    )


def test_vectorize_symbolic():
    refused(
        dynamic,
        lambda sch: sch.vectorize(sch.get_loops("B")[0]),
        r"expected a loop with a constant extent \(or one of vscale\), got n",
    )

    def split_before(sch):
        sch.vectorize(sch.split(sch.get_loops("B")[0], [None, 4])[1])

    apply(dynamic, split_before, sizes={"n": 6})


def test_compiled():
    def primitives(sch):
        for name in "BC":
            i, j = sch.get_loops(name)
            sch.parallel(i)
            sch.vectorize(j)

    sch = apply(two_stages, primitives)
    assert sch.mod["main"].scheduled_by_hand
    a = np.random.rand(16, 8).astype("float32")
    c = np.zeros_like(a)
    tvm.build(sch, target=tvm.testing.host_target())(a, c)
    np.testing.assert_allclose(c, a * 2 + 1, rtol=1e-6)
    assert isinstance(sch.mod["main"], tir.PrimFunc)


@pytest.mark.parametrize("kind", ["parallel", "vectorize"])
def test_a_block_may_compute_an_element_again(kind):
    @T.prim_func
    def func(A: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(128, i * i % 128)
                C[vi] = A[vi] * 2.0

    apply(func, lambda s: getattr(s, kind)(s.get_loops("B")[0]))


def test_a_block_that_updates_may_not_run_again():
    @T.prim_func
    def func(A: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(128, i * i % 128)
                C[vi] = C[vi] + A[vi]

    refused(func, lambda s: s.parallel(s.get_loops("B")[0]), "one to one")
    sch = tir.Schedule(func, enable_check=False)
    sch.parallel(sch.get_loops("B")[0])
    assert sch.get(sch.get_loops("B")[0]).kind == tir.ForKind.PARALLEL
