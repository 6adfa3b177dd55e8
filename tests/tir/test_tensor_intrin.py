# SPDX-License-Identifier: Apache-2.0
"""The registry of tensor intrinsics."""

import pytest
from tvm import tir

from tests.tir.transform.build_ir import buffer, func


def test_tensor_intrin_registry():
    f = func([buffer((4,))], tir.Evaluate(0))
    tir.TensorIntrin.register("test.nothing", f, f, override=True)
    assert tir.TensorIntrin.get("test.nothing").desc.same_as(f)
    with pytest.raises(
        ValueError, match="expected a name that is not registered, got 'test.nothing'"
    ):
        tir.TensorIntrin.register("test.nothing", f, f)
    with pytest.raises(ValueError, match="did you mean 'test.nothing'"):
        tir.TensorIntrin.get("test.nothin")
    assert tir.TensorIntrin.get("test.none", allow_missing=True) is None


def test_dot_products_of_amd_are_described():
    from tvm.tir.tensor_intrin.rocm import AMDGPU_SDOT4_INTRIN

    intrin = tir.TensorIntrin.get(AMDGPU_SDOT4_INTRIN)
    assert "llvm.amdgcn.sdot4" in intrin.impl.script()
    assert [b.scope() for b in intrin.desc.buffer_map.values()].count("shared") == 2
