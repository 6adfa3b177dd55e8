# SPDX-License-Identifier: Apache-2.0
"""Whether a device can reach the memory that its functions access."""

import pytest
import tvm
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import buffer, func, store


def test_verify_memory_names_the_buffer():
    A = buffer((4,))
    mod = tvm.IRModule({"f": func([A], store(A, 0, 1.0), target=tvm.target.Target("cuda"))})
    with pytest.raises(
        RuntimeError, match="expected f to access buffer A inside loops bound to GPU threads"
    ):
        tt.VerifyMemory()(mod)
