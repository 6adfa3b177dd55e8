# SPDX-License-Identifier: Apache-2.0
"""Moves constant tensors from functions to the module."""

import numpy as np
import tvm
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import buffer, func, store


def test_extract_constants_once():
    data = tvm.runtime.tensor(np.arange(4, dtype="float32"))
    same = tvm.runtime.tensor(np.arange(4, dtype="float32"))
    A = buffer((4,))

    def program(tensor):
        C = buffer((4,), name="C")
        return func(
            [A],
            tir.AllocateConst(C.data, "float32", [4], tensor, tir.DeclBuffer(C, store(A, 0, C[1]))),
        )

    mod = tt.ExtractPrimFuncConstants()(tvm.IRModule({"f": program(data), "g": program(same)}))
    assert len(mod.attrs["constants"]) == 1
    assert mod["f"].body.irmod_storage_idx == 0 and mod["f"].body.data is None
