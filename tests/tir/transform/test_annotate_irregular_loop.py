# SPDX-License-Identifier: Apache-2.0
"""Marks loops that something may leave early."""

import pytest
from tvm import tir
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
