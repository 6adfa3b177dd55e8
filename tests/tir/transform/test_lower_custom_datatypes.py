# SPDX-License-Identifier: Apache-2.0
"""Types registered by users: there are none."""

import pytest
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import check


def test_built_in_types_stay():
    @T.prim_func
    def before(A: T.Buffer((4,), "float8_e4m3fn"), B: T.Buffer((4,), "bfloat16")):
        for i in range(4):
            B[i] = T.Cast("bfloat16", A[i])

    check(tt.LowerCustomDatatypes(), before, before)


def test_other_types_have_no_values():
    with pytest.raises(ValueError, match="dtype"):
        tir.Var("x", "custom[posit]32")
