# SPDX-License-Identifier: Apache-2.0
"""Removes statements of what is known, once nothing uses them any more."""

from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import buffer, check, func, seq, store


def test_remove_assume():
    A, n = buffer((4,)), tir.Var("n", "int32")
    before = func([A, n], seq(tir.Evaluate(tir.assume(n > 0)), store(A, 0, 1.0)))
    check(tt.RemoveAssume(), before, func([A, n], store(A, 0, 1.0)))
