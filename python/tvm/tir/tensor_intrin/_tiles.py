# SPDX-License-Identifier: Apache-2.0
"""What intrinsics of tiles share: how a tile lies in memory, and descriptions of copying a tile, of
setting it to zero and of multiplying two."""

import dataclasses
from collections.abc import Callable

from tvm import tir
from tvm.script import tir as T


def as_is(row, column):
    return row, column


def transposed(row, column):
    return column, row


@dataclasses.dataclass(frozen=True)
class Tile:
    """The memory of a tile."""

    shape: tuple[int, int]
    dtype: str
    scope: str
    factor: int  # its offset is a multiple of so many elements
    at: Callable = as_is  # (row, column) -> where that element of the tile lies

    def match(self, handle, strides=None):
        """The buffer of a parameter."""
        return T.match_buffer(
            handle, self.shape, self.dtype, strides=strides, align=64, offset_factor=self.factor,
            scope=self.scope,
        )  # fmt: skip

    def whole(self):
        return tuple(slice(0, extent) for extent in self.shape)


def copy_desc(shape, source, result):
    rows, columns = shape

    @T.prim_func
    def desc(a: T.handle, c: T.handle) -> None:
        A = source.match(a)
        C = result.match(c)
        with T.block("root"):
            T.reads(A[source.whole()])
            T.writes(C[result.whole()])
            for i, j in T.grid(rows, columns):
                with T.block("copy"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[result.at(vi, vj)] = A[source.at(vi, vj)]

    return desc


def zero_desc(shape, result):
    rows, columns = shape
    zero = tir.const(0, result.dtype)

    @T.prim_func
    def desc(c: T.handle) -> None:
        C = result.match(c)
        with T.block("root"):
            T.reads()
            T.writes(C[result.whole()])
            for i, j in T.grid(rows, columns):
                with T.block("init"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[result.at(vi, vj)] = zero

    return desc


def product_desc(sizes, left, right, result):
    """C += A B, where element (i, k) of A and (k, j) of B are where their tiles say."""
    m_dim, n_dim, k_dim = sizes

    def widened(x):
        return x if x.dtype == result.dtype else T.Cast(result.dtype, x)

    @T.prim_func
    def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = left.match(a)
        B = right.match(b)
        C = result.match(c)
        with T.block("root"):
            T.reads(C[result.whole()], A[left.whole()], B[right.whole()])
            T.writes(C[result.whole()])
            for i, j, k in T.grid(m_dim, n_dim, k_dim):
                with T.block("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[result.at(vi, vj)] = C[result.at(vi, vj)] + widened(
                        A[left.at(vi, vk)]
                    ) * widened(B[right.at(vk, vj)])

    return desc
