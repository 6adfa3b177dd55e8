# SPDX-License-Identifier: Apache-2.0
"""Programs that the tests tune, and libraries that misbehave."""

from tvm import te, tir
from tvm.script import tir as T


def sigmoid(m=64, n=64):
    A = te.placeholder((m, n), name="A")
    C = te.compute((m, n), lambda i, j: 1 / (1 + tir.exp(-A[i, j])), name="C")
    return te.create_prim_func([A, C])


def matmul(n=32, m=32, k=32):
    A = te.placeholder((n, k), name="A")
    B = te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return te.create_prim_func([A, B, C])


def row_sum(m=64, n=128):
    A = te.placeholder((m, n), name="A")
    r = te.reduce_axis((0, n), name="r")
    B = te.compute((m,), lambda i: te.sum(A[i, r], axis=r), name="B")
    return te.create_prim_func([A, B])


@T.prim_func
def doubled(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for i in range(256):
        with T.block("B"):
            v = T.axis.spatial(256, i)
            B[v] = A[v] * T.float32(2)


@T.prim_func
def nearly_doubled(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for i in range(255):
        B[i] = A[i] * T.float32(2)


@T.prim_func
def counted(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.evaluate(T.call_extern("int64", "write", T.int32(2), A.data, T.int64(1)))


@T.prim_func
def never_ends(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    while B[0] < T.float32(2):
        B[0] = A[0] * T.float32(0)


@T.prim_func
def aborts(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.evaluate(T.call_extern("int32", "abort"))


@T.prim_func
def out_of_bounds(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for i in range(1 << 30):
        B[i * 1024] = A[0]


@T.prim_func
def allocates_for_ever(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    while B[0] < T.float32(2):
        # Private, anonymous pages that are written: nothing an optimiser may leave out.
        T.evaluate(
            T.call_extern(
                "handle",
                "memset",
                T.call_extern(
                    "handle", "mmap", T.int64(0), T.int64(1 << 24), 3, 0x22, -1, T.int64(0)
                ),
                T.int32(1),
                T.int64(1 << 24),
            )
        )
        B[0] = A[0] * T.float32(0)
