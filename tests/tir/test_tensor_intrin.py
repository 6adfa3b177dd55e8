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
