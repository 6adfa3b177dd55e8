# SPDX-License-Identifier: Apache-2.0
"""Removes stores of values that may be anything."""

import pytest
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, seq, store


def test_remove_store_undef():
    A = buffer((4,), "int32")
    undef = tir.call_intrin("int32", "tir.undef")
    before = func([A], seq(store(A, 0, undef), store(A, 1, 2)))
    check(tt.RemoveStoreUndef(), before, func([A], store(A, 1, 2)))
    with pytest.raises(ValueError, match="expected T.undef only as a value that is stored"):
        apply(tt.RemoveStoreUndef(), func([A], store(A, 0, undef + 1)))
