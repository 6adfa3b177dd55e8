# SPDX-License-Identifier: Apache-2.0
"""create_prim_func gives the programs that one would write in TVMScript."""

import tvm
from tvm import te, tir
from tvm.script import tir as T


def check(args, expected, **kwargs):
    func = te.create_prim_func(args, **kwargs)
    expected = expected.with_attr({"global_symbol": "main", "tir.noalias": True})
    tvm.ir.assert_structural_equal(func, expected)


def test_matmul():
    A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 16), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((4, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

    @T.prim_func
    def expected(
        A: T.Buffer((4, 8), "float32"),
        B: T.Buffer((8, 16), "float32"),
        C: T.Buffer((4, 16), "float32"),
    ):
        for i, j, k in T.grid(4, 16, 8):
            with T.block("C"):
                v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                T.reads(A[v_i, v_k], B[v_k, v_j])
                T.writes(C[v_i, v_j])
                with T.init():
                    C[v_i, v_j] = T.float32(0)
                C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]

    check([A, B, C], expected)


def test_two_stages_of_dynamic_shape():
    n = te.size_var("n", "int64")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n, 4), lambda i, j: B[i] * 2.0, name="C")

    @T.prim_func
    def expected(a: T.handle, c: T.handle):
        n = T.int64(is_size_var=True)
        A = T.match_buffer(a, (n,), "float32")
        C = T.match_buffer(c, (n, T.int64(4)), "float32")
        B = T.alloc_buffer((n,), "float32")
        for i in range(n):
            with T.block("B"):
                v_i = T.axis.spatial(n, i)
                T.reads(A[v_i])
                T.writes(B[v_i])
                B[v_i] = A[v_i] + T.float32(1)
        for i, j in T.grid(n, T.int64(4)):
            with T.block("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(B[v_i])
                T.writes(C[v_i, v_j])
                C[v_i, v_j] = B[v_i] * T.float32(2)

    check([A, C], expected)


def test_argmax():
    def combine(x, y):
        keep = x[1] >= y[1]
        return tir.Select(keep, x[0], y[0]), tir.Select(keep, x[1], y[1])

    argmax = te.comm_reducer(combine, lambda t, u: (tir.const(-1, t), te.min_value(u)))
    I, V = te.placeholder((8, 4), "int32", "I"), te.placeholder((8, 4), "float32", "V")
    k = te.reduce_axis((0, 4), name="k")
    outputs = te.compute((8,), lambda i: argmax((I[i, k], V[i, k]), axis=k), name="best")

    @T.prim_func
    def expected(
        I: T.Buffer((8, 4), "int32"),
        V: T.Buffer((8, 4), "float32"),
        best_v0: T.Buffer((8,), "int32"),
        best_v1: T.Buffer((8,), "float32"),
    ):
        for i, k in T.grid(8, 4):
            with T.block("best"):
                v_i, v_k = T.axis.remap("SR", [i, k])
                T.reads(I[v_i, v_k], V[v_i, v_k])
                T.writes(best_v0[v_i], best_v1[v_i])
                with T.init():
                    best_v0[v_i] = -1
                    best_v1[v_i] = T.min_value("float32")
                keep: T.int32 = T.Select(best_v1[v_i] >= V[v_i, v_k], best_v0[v_i], I[v_i, v_k])
                value: T.float32 = T.Select(best_v1[v_i] >= V[v_i, v_k], best_v1[v_i], V[v_i, v_k])
                best_v0[v_i] = keep
                best_v1[v_i] = value

    check([I, V, *outputs], expected)


def test_text_comes_back():
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((), lambda: B[3] + 1, name="C")
    func = te.create_prim_func([A, C])
    assert tvm.ir.structural_equal(tvm.script.from_source(func.script()), func)
