# SPDX-License-Identifier: Apache-2.0
"""Makes loops begin at 0 and go in steps of 1."""

import tvm
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, store


def test_canonicalize_loop_begins_at_zero_with_step_one():
    A = buffer((16,))
    before = func([A], loop(8, lambda i: store(A, i, 1.0), begin=2, step=4))
    check(tt.CanonicalizeLoop(), before, func([A], loop(2, lambda i: store(A, i * 4 + 2, 1.0))))


def test_canonicalize_loop_symbolic_step():
    A, n, s = buffer((16,)), tir.Var("n", "int32"), tir.Var("s", "int32")
    before = func([A, n, s], loop(n, lambda i: store(A, i, 1.0), step=s))
    result = apply(tt.CanonicalizeLoop(), before)
    assert result.body.step is None
    tvm.ir.assert_structural_equal(result.body.body.indices[0], result.body.loop_var * s)
