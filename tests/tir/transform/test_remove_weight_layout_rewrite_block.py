# SPDX-License-Identifier: Apache-2.0
"""Removes blocks that bring weights into another layout: the caller gives them in that layout."""

import numpy as np
import pytest
import tvm
from tvm.script import tir as T
from tvm.tir import interpret
from tvm.tir import transform as tt

from tests.tir.programs import floats
from tests.tir.transform.build_ir import apply


@T.prim_func
def product_of_transposed(W: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    R = T.alloc_buffer((8, 4))
    for i, j in T.grid(4, 8):
        with T.block("rewrite"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
            R[vj, vi] = W[vi, vj]
    for i, k in T.grid(4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + R[vk, vi]


def test_the_parameter_has_the_new_layout():
    after = apply(tt.RemoveWeightLayoutRewriteBlock(), product_of_transposed)
    assert "rewrite" not in after.script()
    W, C, expected = floats(4, 8), np.zeros(4, "float32"), np.zeros(4, "float32")
    interpret(product_of_transposed)(W, expected)
    interpret(after)(np.ascontiguousarray(W.T), C)
    np.testing.assert_array_equal(C, expected)


def test_what_is_not_marked_stays():
    before = product_of_transposed.script().replace("layout_rewrite_preproc", "other")
    func = tvm.script.from_source(before)
    tvm.ir.assert_structural_equal(apply(tt.RemoveWeightLayoutRewriteBlock(), func), func)


def test_weights_that_are_computed():
    @T.prim_func
    def computed(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        W = T.alloc_buffer((4,))
        R = T.alloc_buffer((4,))
        for i in range(4):
            with T.block("W"):
                v = T.axis.spatial(4, i)
                W[v] = A[v] * T.float32(2)
        for i in range(4):
            with T.block("rewrite"):
                v = T.axis.spatial(4, i)
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                R[3 - v] = W[v]
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = R[v]

    with pytest.raises(ValueError, match="expected weight W to be a parameter"):
        apply(tt.RemoveWeightLayoutRewriteBlock(), computed)
    after = apply(tt.RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True), computed)
    assert "rewrite" not in after.script()


def test_only_copies_are_layouts():
    @T.prim_func
    def scaled(W: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("rewrite"):
                v = T.axis.spatial(4, i)
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                C[v] = W[v] * T.float32(2)

    with pytest.raises(ValueError, match="expected block rewrite to copy elements"):
        apply(tt.RemoveWeightLayoutRewriteBlock(), scaled)
