# SPDX-License-Identifier: Apache-2.0
"""int0 and its kin, which tvm-ffi would read as int32, are refused where a text becomes a type."""

import pytest
import tvm
from tvm import relax, te, tir

MAKE = {
    "Var": lambda dtype: tir.Var("x", dtype),
    "Cast": lambda dtype: tir.Cast(dtype, tir.Var("x", "int32")),
    "PrimType": tvm.ir.PrimType,
    "const": lambda dtype: tir.IntImm(dtype, 1),
    "buffer": lambda dtype: tir.decl_buffer((2,), dtype),
    "placeholder": lambda dtype: te.placeholder((2,), dtype),
    "struct info": lambda dtype: relax.TensorStructInfo((2,), dtype),
    "tensor": lambda dtype: tvm.runtime.empty((2,), dtype),
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("dtype", ["int0", "uint0", "float0", "int0x4", "int00"])
def test_refused(make, dtype):
    with pytest.raises(ValueError, match=f"expected a number of bits as in int32, got '{dtype}'"):
        make(dtype)


@pytest.mark.parametrize("dtype", ["int8", "float16", "bool", "bfloat16", "int4", "int32x4"])
def test_accepted(dtype):
    assert str(tir.Var("x", dtype).dtype) == dtype
