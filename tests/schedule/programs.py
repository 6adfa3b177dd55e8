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


@T.prim_func
def three_stages(A: T.Buffer((16, 8), "float32"), D: T.Buffer((16, 8), "float32")):
    B = T.alloc_buffer((16, 8))
    C = T.alloc_buffer((16, 8))
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0
    for i, j in T.grid(16, 8):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] + B[vi, vj]


@T.prim_func
def from_two(A: T.Buffer((8,), "float32"), C: T.Buffer((6,), "float32")):
    """C is shorter than B."""
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2.0
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = B[vi] + 1.0


@T.prim_func
def stepped(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.serial(0, 16, step=2):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2.0


@T.prim_func
def conditional(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), n: T.int32):
    """B runs only where a condition holds."""
    B = T.alloc_buffer((8,))
    for i in range(8):
        if i < n:
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2.0
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + 1.0


@T.prim_func
def let_around(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), n: T.int32):
    """B uses a variable of a statement around it."""
    B = T.alloc_buffer((8,))
    for i in range(8):
        x: T.int32 = i * n
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.cast(x, "float32")
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + 1.0


@T.prim_func
def nested(
    A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")
):
    for io, jo in T.grid(2, 4):
        with T.block("outer"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            for ii, ji in T.grid(4, 2):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [ii, ji])
                    B[vio * 4 + vi, vjo * 2 + vj] = A[vio * 4 + vi, vjo * 2 + vj] * 2.0
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func
def mixed_predicate(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    """The predicate is about the spatial and the reduction loop at once."""
    for i, k in T.grid(8, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(i * 8 + k < 60)
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def without_blocks(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    """Statements in no block write A before B, and read B after it."""
    B = T.alloc_buffer((8,))
    for i in range(8):
        A[i] = 1.0
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = 0.0
            B[vi] = A[vi] * 2.0
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + 1.0


@T.prim_func
def by_pointer(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    """C reads B through its pointer."""
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2.0
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(B[vi])
            T.writes(C[vi])
            C[vi] = T.call_extern("float32", "first", T.address_of(B[vi]), B[vi])


# ---- intrinsics of four elements -----------------------------------------------------------------
def intrinsic(name, op):
    """Registers B[i] = op(A[i]) for four elements."""

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


SCALE4 = intrinsic("test.scale4", lambda x: x * T.float32(2))
ADD4 = intrinsic("test.add4", lambda x: x + T.float32(1))


@T.prim_func
def two(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func
def stencil(A: T.Buffer((20,), "float32"), C: T.Buffer((18,), "float32")):
    B = T.alloc_buffer((20,))
    for i in range(20):
        with T.block("B"):
            vi = T.axis.spatial(20, i)
            B[vi] = A[vi] * 2.0
    for i in range(18):
        with T.block("C"):
            vi = T.axis.spatial(18, i)
            C[vi] = B[vi] + B[vi + 1] + B[vi + 2]


@T.prim_func
def matmul_relu(
    A: T.Buffer((8, 6), "float32"), B: T.Buffer((6, 10), "float32"), D: T.Buffer((8, 10), "float32")
):
    C = T.alloc_buffer((8, 10))
    for i, j, k in T.grid(8, 10, 6):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(8, 10):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], 0.0)


@T.prim_func
def dynamic_sums(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8))
    C = T.match_buffer(c, (n,))
    B = T.alloc_buffer((n, 8))
    for i, j in T.grid(n, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, k in T.grid(n, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + B[vi, vk]


@T.prim_func
def stages_inlined(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * 2.0 + 1.0


@T.prim_func
def dynamic_transposed(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8))
    C = T.match_buffer(c, (8, n))
    B = T.alloc_buffer((n, 8))
    for i, j in T.grid(n, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(8, n):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj, vi] + 1.0


@T.prim_func
def tiled(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for io, jo, ii, ji in T.grid(2, 2, 4, 4):
        with T.block("B"):
            vi = T.axis.spatial(8, io * 4 + ii)
            vj = T.axis.spatial(8, jo * 4 + ji)
            B[vi, vj] = A[vi, vj] * 2.0


@T.prim_func
def rows(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]
