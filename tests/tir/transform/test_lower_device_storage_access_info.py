# SPDX-License-Identifier: Apache-2.0
"""Replaces typed pointers with offset and access mask by plain addresses."""

import pytest
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, func


def test_access_pointer_becomes_an_address():
    A = buffer((32,))
    pointer = A.access_ptr("r", offset=8)
    before = func([A], tir.Evaluate(tir.call_extern("int32", "f", pointer)))
    call = apply(tt.LowerDeviceStorageAccessInfo(), before).body.value
    assert call.args[1].op.name == "tir.address_of" and int(call.args[1].args[0].indices[0]) == 8


@pytest.mark.parametrize("data", [tir.Var("n", "int32"), tir.call_extern("handle", "memory")])
def test_only_variables_point(data):
    element = tir.type_annotation("float32")
    pointer = tir.call_intrin("handle", "tir.tvm_access_ptr", element, data, 0, 4, 1)
    with pytest.raises(TypeError, match="expected a pointer variable in tvm_access_ptr"):
        apply(tt.LowerDeviceStorageAccessInfo(), func([], tir.Evaluate(pointer)))
