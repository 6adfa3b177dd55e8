# SPDX-License-Identifier: Apache-2.0
"""Marks loops that something may leave early."""

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, seq, store, when


def test_annotate_irregular_loop():
    A = buffer((8,))

    def body(i):
        return seq(when(A[i] > 0.0, tir.Evaluate(tir.break_loop())), store(A, i, 1.0))

    check(
        tt.AnnotateIrregularLoop(),
        func([A], loop(8, body)),
        func([A], loop(8, body, annotations={"irregular_loop_mark": 1})),
    )
    with pytest.raises(ValueError, match="expected break and continue in serial loops"):
        apply(tt.AnnotateIrregularLoop(), func([A], loop(8, body, kind="parallel")))


def test_what_a_while_loop_does_is_its_own_matter():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32")):
        for i in range(8):
            while A[i] > T.float32(0):
                if A[i] > T.float32(5):
                    break
                A[i] = A[i] - T.float32(1)

    tvm.ir.assert_structural_equal(apply(tt.AnnotateIrregularLoop(), before), before)
