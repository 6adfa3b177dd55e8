# SPDX-License-Identifier: Apache-2.0
"""Gives functions a C signature: pointers and scalars in the order of their parameters."""

import pytest
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, func, store


def test_unpacked_api_has_the_order_of_the_parameters():
    A, n = buffer((4,)), tir.Var("n", "int32")
    before = func([n, A], store(A, 0, 1.0), global_symbol="f")
    result = apply(tt.MakeUnpackedAPI(), before)
    assert [p.name for p in result.params] == ["n", "A"] and len(result.buffer_map) == 0
    assert result.ret_type.dtype == "int32"  # 0, or that it failed


@pytest.mark.parametrize("what", ["shape", "strides", "offset"])
def test_unpacked_api_has_no_tensor_to_take_numbers_from(what):
    m = tir.Var("m", "int32")
    shape, strides = [m if what == "shape" else 4], [m] if what == "strides" else []
    offset = m if what == "offset" else None
    A = tir.decl_buffer(shape, name="A", strides=strides, elem_offset=offset)
    with pytest.raises(
        ValueError, match=f"expected constants or scalar parameters as the {what} of A"
    ):
        apply(tt.MakeUnpackedAPI(), func([A], tir.Evaluate(0), global_symbol="f"))
