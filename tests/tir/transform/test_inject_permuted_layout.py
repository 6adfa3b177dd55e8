# SPDX-License-Identifier: Apache-2.0
"""Rows of shared memory with their pieces in another order: the same results, other banks."""

import numpy as np
import pytest
import tvm
from tvm.script import tir as T
from tvm.tir import interpret
from tvm.tir import transform as tt


def transposed(width, dtype, marks=("g2s_A", "s2l_A")):
    """B = A^T through shared memory, each thread a row."""
    first, second = marks

    @T.prim_func
    def func(A: T.Buffer((8, width), dtype), B: T.Buffer((width, 8), dtype)):
        for i in T.thread_binding(8, "threadIdx.x"):
            with T.block("root"):
                T.reads(A[0:8, 0:width])
                T.writes(B[0:width, 0:8])
                S = T.alloc_buffer((8, width), dtype, scope="shared")
                with T.block("write"):
                    T.reads(A[i, 0:width])
                    T.writes(S[i, 0:width])
                    T.block_attr({"permuted_layout": first})
                    for j in range(width):
                        S[i, j] = A[i, j]
                T.tvm_storage_sync("shared")
                with T.block("read"):
                    T.reads(S[0:8, 0:width])
                    T.writes(B[0:width, 0:8])
                    T.block_attr({"permuted_layout": second})
                    for j in range(width):
                        B[j, i] = S[i, j]

    return tvm.IRModule({"main": func})


@pytest.mark.parametrize(
    "width, dtype, change",
    [(64, "float16", "j // 8, i"), (32, "float16", "j // 8, i // 2"),
     (16, "float16", "j // 8, i // 4"), (128, "int8", "j // 16, i"), (32, "float32", "j // 4, i"),
     (24, "float16", None), (20, "float16", None)],
)  # fmt: skip
def test_results_stay(width, dtype, change):
    after = tt.InjectPermutedLayout()(transposed(width, dtype))
    text = after.script()
    assert f"bitwise_xor({change})" in text if change else "bitwise_xor" not in text
    a = np.arange(8 * width).astype(dtype).reshape(8, width)
    b = np.zeros((width, 8), dtype)
    interpret(after)(a, b)
    np.testing.assert_array_equal(b, a.T)


def test_lines_of_a_matrix_lie_in_different_banks():
    """Eight lines of 16 bytes that ldmatrix reads at once fill all 32 banks."""
    for width in (64, 32, 16):
        rows, pieces = np.arange(8), min(8, width // 8)
        moved = (rows * (width // 8)) + (0 ^ (rows // (8 // pieces) % pieces))
        assert len(set(moved % 8)) == 8


def test_all_blocks_must_agree():
    with pytest.raises(ValueError, match="expected all blocks that use S to have the annotation"):
        tt.InjectPermutedLayout()(transposed(64, "float16", ("g2s_A", "")))


def test_nothing_is_asked_for():
    mod = transposed(64, "float16", ("", ""))
    tvm.ir.assert_structural_equal(tt.InjectPermutedLayout()(mod), mod)


def test_rows_that_a_pointer_walks():
    @T.prim_func
    def func(A: T.Buffer((8, 64), "float16")):
        for _ in T.thread_binding(8, "threadIdx.x"):
            with T.block("root"):
                T.reads()
                T.writes()
                S = T.alloc_buffer((8, 64), "float16", scope="shared")
                with T.block("use"):
                    T.reads()
                    T.writes()
                    T.block_attr({"permuted_layout": "s2g"})
                    T.call_extern("int32", "f", S.access_ptr("r"))

    with pytest.raises(
        ValueError, match="expected buffer S to be used by its elements and ptx_ldm"
    ):
        tt.InjectPermutedLayout()(tvm.IRModule({"main": func}))


def test_a_matrix_behind_the_start_of_a_pointer():
    """Both the offset of the pointer and that beside it count, once each."""

    @T.prim_func
    def func(A: T.Buffer((16, 64), "float16"), B: T.Buffer((32, 2), "float16")):
        for t in T.thread_binding(32, "threadIdx.x"):
            with T.block("root"):
                T.reads(A[0:16, 0:64])
                T.writes(B[0:32, 0:2])
                S = T.alloc_buffer((16, 64), "float16", scope="shared")
                part = T.alloc_buffer((2,), "float16", scope="local")
                with T.block("write"):
                    T.reads(A[0:16, 0:64])
                    T.writes(S[0:16, 0:64])
                    T.block_attr({"permuted_layout": "g2s_A"})
                    for i in range(32):
                        S[t // 2, t % 2 * 32 + i] = A[t // 2, t % 2 * 32 + i]
                T.tvm_storage_sync("shared")
                with T.block("read"):
                    T.reads(S[0:16, 0:64])
                    T.writes(part[0:2])
                    T.block_attr({"permuted_layout": "s2l_A"})
                    T.ptx_ldmatrix(
                        "float16", False, 1, ".b16", part.data, 0,
                        S.access_ptr("r", offset=8 * 64 + 16), t % 8 * 64 + 8,
                    )  # fmt: skip
                for i in range(2):
                    B[t, i] = part[i]

    mod = tvm.IRModule({"main": func})
    a = np.arange(16 * 64).reshape(16, 64).astype("float16")
    for program in (mod, tt.InjectPermutedLayout()(mod)):
        b = np.zeros((32, 2), "float16")
        interpret(program)(a, b)
        np.testing.assert_array_equal(b.reshape(8, 8), a[8:16, 24:32])
