# SPDX-License-Identifier: Apache-2.0
"""Removes assertions."""

from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import buffer, check, func, store


def test_skip_assert():
    A, n = buffer((4,)), tir.Var("n", "int32")
    before = func([A, n], tir.AssertStmt(n > 0, tir.StringImm("n"), store(A, 0, 1.0)))
    check(tt.SkipAssert(), before, func([A, n], store(A, 0, 1.0)))
