# SPDX-License-Identifier: Apache-2.0
"""Undoes a form of quotients that simplification prefers and machines do not."""

from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import buffer, check, func, store


def test_renormalize_split_pattern():
    A, x = buffer((64,)), tir.Var("x", "int32")
    before = func([A, x], store(A, tir.floordiv(tir.floormod(x, 64), 8), 1.0))
    check(
        tt.RenormalizeSplitPattern(),
        before,
        func([A, x], store(A, tir.floormod(tir.floordiv(x, 8), 8), 1.0)),
    )
