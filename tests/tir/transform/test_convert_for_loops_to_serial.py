# SPDX-License-Identifier: Apache-2.0
"""Makes all loops serial."""

from tvm.tir import transform as tt

from tests.tir.transform.build_ir import buffer, check, func, loop, store


def test_convert_for_loops_to_serial():
    A = buffer((4,))
    check(
        tt.ConvertForLoopsToSerial(),
        func([A], loop(4, lambda i: store(A, i, 1.0), kind="parallel")),
        func([A], loop(4, lambda i: store(A, i, 1.0))),
    )
