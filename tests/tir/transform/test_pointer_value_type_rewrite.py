# SPDX-License-Identifier: Apache-2.0
"""Gives pointers the element type that they are accessed with."""

import tvm
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply


def test_pointer_value_type():
    p = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("float32")))
    V = tir.decl_buffer((4,), "float32x4", name="V", data=p)
    before = tir.PrimFunc(
        [p], tir.DeclBuffer(V, tir.BufferStore(V, tir.Broadcast(tir.const(1.0, "float32"), 4), [0]))
    )
    result = apply(tt.PointerValueTypeRewrite(), before)
    assert result.params[0].type_annotation.element_type.dtype == "float32x4"
    assert result.body.buffer.data.same_as(result.params[0])
