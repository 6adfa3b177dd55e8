# SPDX-License-Identifier: Apache-2.0
"""What intrinsics of tiles share: how a tile is matched, and descriptions of copying a tile, of
setting it to zero and of multiplying two."""

from tvm import tir
from tvm.script import tir as T


def tile(handle, shape, dtype, scope, factor, strides=None):
    """The tile of a parameter; its offset is a multiple of `factor` elements."""
    return T.match_buffer(
        handle, shape, dtype, strides=strides, align=64, offset_factor=factor, scope=scope
    )


def copy_desc(shape, dtype, source_scope, result_scope, factor):
    rows, columns = shape

    @T.prim_func
    def desc(a: T.handle, c: T.handle) -> None:
        A = tile(a, shape, dtype, source_scope, factor)
        C = tile(c, shape, dtype, result_scope, factor)
        with T.block("root"):
            T.reads(A[0:rows, 0:columns])
            T.writes(C[0:rows, 0:columns])
            for i, j in T.grid(rows, columns):
                with T.block("copy"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj]

    return desc


def zero_desc(shape, dtype, scope, factor):
    rows, columns = shape
    zero = tir.const(0, dtype)

    @T.prim_func
    def desc(c: T.handle) -> None:
        C = tile(c, shape, dtype, scope, factor)
        with T.block("root"):
            T.reads()
            T.writes(C[0:rows, 0:columns])
            for i, j in T.grid(rows, columns):
                with T.block("init"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = zero

    return desc


def product_desc(sizes, in_dtype, out_dtype, b_transposed, scopes, factor):
    """C += A B, or A B^T; the scopes are those of A, B and C."""
    m_dim, n_dim, k_dim = sizes
    of_a, of_b, of_c = scopes
    b_shape = b_rows, b_columns = (n_dim, k_dim) if b_transposed else (k_dim, n_dim)
    place = (lambda j, k: (j, k)) if b_transposed else (lambda j, k: (k, j))
    widened = lambda x: x if in_dtype == out_dtype else T.Cast(out_dtype, x)

    @T.prim_func
    def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = tile(a, (m_dim, k_dim), in_dtype, of_a, factor)
        B = tile(b, b_shape, in_dtype, of_b, factor)
        C = tile(c, (m_dim, n_dim), out_dtype, of_c, factor)
        with T.block("root"):
            T.reads(C[0:m_dim, 0:n_dim], A[0:m_dim, 0:k_dim], B[0:b_rows, 0:b_columns])
            T.writes(C[0:m_dim, 0:n_dim])
            for i, j, k in T.grid(m_dim, n_dim, k_dim):
                with T.block("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + widened(A[vi, vk]) * widened(B[place(vj, vk)])

    return desc
