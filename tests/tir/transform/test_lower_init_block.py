# SPDX-License-Identifier: Apache-2.0
"""Makes the initialisation of reduction blocks an ordinary conditional statement."""

from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import block, buffer, check, func, loop, seq, store, sum_rows


def test_lower_init_block_guards_the_first_iteration():
    check(tt.LowerInitBlock(), sum_rows(False), sum_rows(True))


def test_lower_init_block_without_reduction_is_unconditional():
    A = buffer((4,))
    vi = tir.Var("vi", "int32")

    def program(lowered):
        init, update = store(A, vi, 0.0), store(A, vi, A[vi] + 1.0)
        return func(
            [A],
            loop(
                4,
                lambda i: block(
                    [(vi, 4, i)],
                    seq(init, update) if lowered else update,
                    **({} if lowered else {"init": init}),
                ),
            ),
        )

    check(tt.LowerInitBlock(), program(False), program(True))
