# SPDX-License-Identifier: Apache-2.0
"""transform_layout, transform_block_layout, set_axis_separator, reindex and relatives"""

import numpy as np
import pytest
from tvm import tir
from tvm.script import tir as T

from .checking import apply, refused
from .test_compute_at import dynamic, matmul_relu, two
from .test_decompose_reduction import rows


def test_transform_layout():
    @T.prim_func
    def expected(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        B = T.alloc_buffer((4, 16, 4))
        for i, j in T.grid(16, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj // 4, vi, vj % 4] = A[vi, vj] * 2.0
        for i, j in T.grid(16, 16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vj // 4, vi, vj % 4] + 1.0

    for buffer in (("write", 0), "B"):
        apply(
            two,
            lambda sch, b=buffer: sch.transform_layout("B", b, lambda i, j: (j // 4, i, j % 4)),
            expected,
        )


def test_transform_layout_of_a_parameter():
    sch = apply(
        two,
        lambda sch: sch.transform_layout("B", ("read", 0), lambda i, j: (j, i)),
        run=False,
    )
    a = np.random.rand(16, 16).astype("float32")
    got, expected = np.zeros((16, 16), "float32"), np.zeros((16, 16), "float32")
    tir.interpret(sch.mod["main"])(np.ascontiguousarray(a.T), got)
    tir.interpret(two)(a, expected)
    np.testing.assert_array_equal(got, expected)


def test_transform_layout_with_padding():
    apply(two, lambda sch: sch.transform_layout("B", "B", lambda i, j: (i, j // 5, j % 5)))
    sch = apply(
        two,
        lambda sch: sch.transform_layout("B", "B", lambda i, j: (i, j // 5, j % 5), pad_value=0),
    )
    assert "B_pad" in sch.mod.script()


def test_transform_layout_symbolic():
    def primitives(sch):
        sch.transform_layout("B", ("write", 0), lambda i, j: (i // 4, j, i % 4))

    apply(dynamic, primitives, sizes={"n": 6})


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


def test_set_axis_separator():
    sch = apply(two, lambda sch: sch.set_axis_separator("B", "B", [1]), run=False)
    buffer = sch.get(sch.get_block("B")).writes[0].buffer
    assert [int(s) for s in buffer.axis_separators] == [1]


def test_reindex():
    @T.prim_func
    def transposed(A: T.Buffer((6, 8), "float32"), B: T.Buffer((8, 6), "float32")):
        for i, j in T.grid(8, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, vi] * 2.0

    @T.prim_func
    def expected(A: T.Buffer((6, 8), "float32"), B: T.Buffer((8, 6), "float32")):
        A_reindex = T.alloc_buffer((8, 6))
        for ax0, ax1 in T.grid(8, 6):
            with T.block("A_reindex"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                A_reindex[v0, v1] = A[v1, v0]
        for i, j in T.grid(8, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A_reindex[vi, vj] * 2.0

    apply(transposed, lambda sch: sch.reindex("B", ("read", 0)), expected)
    apply(transposed, lambda sch: sch.reindex("B", ("write", 0)))
    apply(matmul_relu, lambda sch: sch.reindex("C", "A"))
    apply(matmul_relu, lambda sch: sch.reindex("C", "C"))


def test_reindex_convolution():
    @T.prim_func
    def conv(X: T.Buffer((10, 3), "float32"), W: T.Buffer((3, 3, 4), "float32"),
             Y: T.Buffer((8, 4), "float32")):  # fmt: skip
        for i, o, r, c in T.grid(8, 4, 3, 3):
            with T.block("Y"):
                vi, vo, vr, vc = T.axis.remap("SSRR", [i, o, r, c])
                with T.init():
                    Y[vi, vo] = 0.0
                Y[vi, vo] = Y[vi, vo] + X[vi + vr, vc] * W[vr, vc, vo]

    sch = apply(conv, lambda sch: sch.reindex("Y", "X"))
    assert [int(x) for x in sch.get(sch.get_block("X_reindex")).writes[0].buffer.shape] == [8, 3, 3]
    apply(
        conv,
        lambda sch: sch.reindex_cache_read("Y", 0, "local", lambda i, o, r, c: (i, r * 3 + c)),
    )
    apply(
        conv,
        lambda sch: sch.reindex_cache_write("Y", 0, "local", lambda i, o, r, c: (o, i)),
    )


def test_cache_inplace():
    @T.prim_func
    def in_place(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = A[vi] + 1.0

    def primitives(sch):
        before, after = sch.cache_inplace("A", 0, "local")
        assert sch.get(before).name_hint == "A_local" and sch.get(after).name_hint == "A_back"

    apply(in_place, primitives)
    refused(two, lambda sch: sch.cache_inplace("B", 0, "local"), "reads and writes, got A")


# ---- refusals ------------------------------------------------------------------------------------
@pytest.mark.parametrize("primitives, match", [
    (lambda s: s.transform_layout("B", "X", lambda i, j: (j, i)), "got 'X'"),
    (lambda s: s.transform_layout("B", ("write", 1), lambda i, j: (j, i)), "its position"),
    (lambda s: s.transform_layout("B", "B", lambda i, j: (i // 2, j)), "its own place"),
    (lambda s: s.transform_layout("B", "B", tir.IndexMap.from_func(lambda i: [i])), "2 indices"),
    (lambda s: s.transform_block_layout("B", lambda i, j: (i // 2, j)), "one to one"),
    (lambda s: s.set_axis_separator("B", "B", [3]), "from 0 to 2, got 3"),
    (lambda s: s.reindex_cache_read("B", 0, "local", lambda i, j: (i,)), "to be different"),
])  # fmt: skip
def test_refusals(primitives, match):
    refused(two, primitives, match)


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
