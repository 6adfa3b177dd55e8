# SPDX-License-Identifier: Apache-2.0
"""Fragments of WMMA get their shape and layout from what is done with them."""

import pytest
import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt


def infer(func):
    return tt.InferFragment()(tvm.IRModule({"main": func})).script()


def test_a_product_tells_all_of_them():
    @T.prim_func
    def product(A: T.Buffer((256,), "float16"), C: T.Buffer((256,), "float32")):
        T.launch_thread("threadIdx.x", 32)
        a = T.allocate([256], "float16", "wmma.matrix_a")
        b = T.allocate([256], "float16", "wmma.matrix_b")
        c = T.allocate([256], "float32", "wmma.accumulator")
        T.tvm_fill_fragment(c, 16, 16, 16, 0, T.float32(0))
        T.tvm_load_matrix_sync(a, 16, 16, 16, 0, A.data, 16, "row_major")
        T.tvm_load_matrix_sync(b, 16, 16, 16, 0, A.data, 16, "col_major")
        T.tvm_mma_sync(c, 0, a, 0, b, 0, c, 0)
        T.tvm_store_matrix_sync(c, 16, 16, 16, 0, C.data, 16, "row_major")

    text = infer(product)
    for name in "abc":
        assert f'T.attr({name}, "fragment_shape", "16, 16, 16")' in text
    assert 'T.attr(a, "fragment_layout", "row_major")' in text
    assert 'T.attr(b, "fragment_layout", "col_major")' in text
    assert 'T.attr(c, "fragment_layout"' not in text
    back = tvm.script.from_source(text, check_well_formed=False)
    assert back.script() == text


def test_shapes_and_layouts_that_disagree():
    @T.prim_func
    def layouts(A: T.Buffer((256,), "float16")):
        T.launch_thread("threadIdx.x", 32)
        a = T.allocate([256], "float16", "wmma.matrix_a")
        T.tvm_load_matrix_sync(a, 16, 16, 16, 0, A.data, 16, "row_major")
        T.tvm_load_matrix_sync(a, 16, 16, 16, 0, A.data, 16, "col_major")

    with pytest.raises(ValueError, match="one layout for fragment a, got row_major and col_major"):
        infer(layouts)

    @T.prim_func
    def shapes(A: T.Buffer((256,), "float16")):
        T.launch_thread("threadIdx.x", 32)
        a = T.allocate([256], "float16", "wmma.matrix_a")
        b = T.allocate([256], "float16", "wmma.matrix_b")
        c = T.allocate([256], "float32", "wmma.accumulator")
        T.tvm_load_matrix_sync(a, 16, 16, 16, 0, A.data, 16, "row_major")
        T.tvm_load_matrix_sync(b, 8, 32, 16, 0, A.data, 16, "row_major")
        T.tvm_fill_fragment(c, 16, 16, 16, 0, T.float32(0))
        T.tvm_mma_sync(c, 0, a, 0, b, 0, c, 0)

    with pytest.raises(ValueError, match="expected one shape in a product for fragment b, got 16"):
        infer(shapes)
