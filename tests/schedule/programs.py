# SPDX-License-Identifier: Apache-2.0
"""Programs that several tests schedule."""

from tvm import tir
from tvm.script import tir as T


@T.prim_func
def elementwise(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0


@T.prim_func
def two_stages(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    B = T.alloc_buffer((16, 8))
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func
def matmul(
    A: T.Buffer((16, 12), "float32"),
    B: T.Buffer((12, 8), "float32"),
    C: T.Buffer((16, 8), "float32"),
):
    for i, j, k in T.grid(16, 8, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def dynamic(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8))
    B = T.match_buffer(b, (n, 8))
    for i, j in T.grid(n, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0


@T.prim_func
def shared_loop(
    A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")
):
    """C reads in an iteration what B wrote in the one before."""
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2.0
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[T.max(vi - 1, 0)] + 1.0


# ---- intrinsics of four elements -----------------------------------------------------------------
def _register(name, op):
    @T.prim_func
    def desc(a: T.handle, b: T.handle):
        A = T.match_buffer(a, (4,), offset_factor=1)
        B = T.match_buffer(b, (4,), offset_factor=1)
        with T.block("root"):
            T.reads(A[0:4])
            T.writes(B[0:4])
            for i in range(4):
                with T.block(""):
                    vi = T.axis.spatial(4, i)
                    B[vi] = op(A[vi])

    @T.prim_func
    def impl(a: T.handle, b: T.handle):
        A = T.match_buffer(a, (4,), offset_factor=1)
        B = T.match_buffer(b, (4,), offset_factor=1)
        with T.block("root"):
            T.reads(A[0:4])
            T.writes(B[0:4])
            for i in T.vectorized(4):
                B[i] = op(A[i])

    tir.TensorIntrin.register(name, desc, impl, override=True)
    return name


SCALE4 = _register("test.scale4", lambda x: x * T.float32(2))
ADD4 = _register("test.add4", lambda x: x + T.float32(1))
