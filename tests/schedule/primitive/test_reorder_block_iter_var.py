# SPDX-License-Identifier: Apache-2.0
"""reorder_block_iter_var: the iterators of a block in another order."""

from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import matmul


def test_iterators_keep_their_values():
    @T.prim_func
    def expected(
        A: T.Buffer((16, 12), "float32"),
        B: T.Buffer((12, 8), "float32"),
        C: T.Buffer((16, 8), "float32"),
    ):
        for i, j, k in T.grid(16, 8, 12):
            with T.block("C"):
                vk, vi, vj = T.axis.remap("RSS", [k, i, j])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    apply(matmul, lambda s: s.reorder_block_iter_var("C", [2, 0, 1]), expected)


def test_refusals():
    for order in ([0, 1], [0, 1, 1], [1, 2, 3]):
        refused(
            matmul,
            lambda s, order=order: s.reorder_block_iter_var("C", order),
            "expected a permutation of 0 to 2 as new_order",
        )
