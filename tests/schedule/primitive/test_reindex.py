# SPDX-License-Identifier: Apache-2.0
"""reindex, reindex_cache_read, reindex_cache_write: copies laid out as the iterators run."""

from tvm.script import tir as T

from tests.schedule.checking import apply
from tests.schedule.programs import matmul_relu


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
