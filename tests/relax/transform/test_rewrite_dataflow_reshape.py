# SPDX-License-Identifier: Apache-2.0
"""Kernels that only move elements in order become views."""

from tvm.relax.transform import RewriteDataflowReshape

from .passes import check

KERNELS = """
@T.prim_func(private=True)
def flatten(A: T.Buffer((T.int64(2), T.int64(3))), B: T.Buffer((T.int64(6),))):
    for i in range(T.int64(6)):
        with T.block("flatten"):
            v = T.axis.spatial(T.int64(6), i)
            B[v] = A[v // T.int64(3), v % T.int64(3)]

@T.prim_func(private=True)
def transpose(A: T.Buffer((T.int64(2), T.int64(3))), B: T.Buffer((T.int64(3), T.int64(2)))):
    for i, j in T.grid(T.int64(3), T.int64(2)):
        with T.block("transpose"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]
"""
MAIN = """
@R.function
def main(x: R.Tensor((2, 3), "float32")):
    cls = Module
    with R.dataflow():
        a = R.call_tir(cls.transpose, (x,), R.Tensor((3, 2), "float32"))
        b = {}
        c = R.add(b, b)
        d = R.call_tir(cls.flatten, (x,), R.Tensor((6,), "float32"))
        R.output(c, d)
    return (c, d)
"""


def test_reshape_inside_of_a_block():
    """An output of the block keeps memory of its own, and a transpose is no reshape."""
    check(
        RewriteDataflowReshape(),
        MAIN.format('R.call_tir(cls.flatten, (x,), R.Tensor((6,), "float32"))'),
        MAIN.format("R.reshape(x, R.shape([6]))"),
        KERNELS,
    )


def test_symbolic_reshape():
    kernel = """
    @T.prim_func(private=True)
    def flatten(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, T.int64(3)))
        B = T.match_buffer(b, (n * T.int64(3),))
        for i in range(n * T.int64(3)):
            with T.block("flatten"):
                v = T.axis.spatial(n * T.int64(3), i)
                B[v] = A[v // T.int64(3), v % T.int64(3)]
    """
    main = """
    @R.function
    def main(x: R.Tensor(("n", 3), "float32")):
        n = T.int64()
        cls = Module
        with R.dataflow():
            a = {}
            b = R.add(a, a)
            R.output(b)
        return b
    """
    check(
        RewriteDataflowReshape(),
        main.format('R.call_tir(cls.flatten, (x,), R.Tensor((n * 3,), "float32"))'),
        main.format("R.reshape(x, R.shape([n * 3]))"),
        kernel,
    )
