# SPDX-License-Identifier: Apache-2.0
"""Replaces block iterators by the values bound to them."""

import pytest
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import (
    apply,
    block,
    buffer,
    check,
    func,
    loop,
    region,
    store,
    sum_rows,
)


def test_convert_blocks_to_opaque_substitutes_iterators():
    A, B = buffer((64,), name="A"), buffer((64,), name="B")
    vi = tir.Var("vi", "int32")
    before = func(
        [A, B],
        loop(
            16,
            lambda i: block(
                [(vi, 64, i * 4)], store(B, vi, A[vi]), [region(A, vi)], [region(B, vi)]
            ),
        ),
    )
    expected = func(
        [A, B],
        loop(
            16,
            lambda i: block([], store(B, i * 4, A[i * 4]), [region(A, i * 4)], [region(B, i * 4)]),
        ),
    )
    check(tt.ConvertBlocksToOpaque(), before, expected)


def test_convert_blocks_to_opaque_needs_lowered_init():
    with pytest.raises(ValueError, match="expected block block without init"):
        apply(tt.ConvertBlocksToOpaque(), sum_rows(False))
