# SPDX-License-Identifier: Apache-2.0
"""Repeats the bodies of short loops."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, seq, store, when


def test_unroll_marked_loop():
    A = buffer((4,))
    before = func([A], loop(3, lambda i: store(A, i, 1.0), kind="unrolled"))
    check(tt.UnrollLoop(), before, func([A], seq(*(store(A, i, 1.0) for i in range(3)))))


def test_unroll_by_option_counts_steps():
    A = buffer((8,))
    before = func([A], loop(4, lambda i: seq(store(A, i, 1.0), store(A, i + 4, 2.0))))
    check(tt.UnrollLoop(), before, before)
    unrolled = func(
        [A], seq(*(s for i in range(4) for s in (store(A, i, 1.0), store(A, i + 4, 2.0))))
    )
    with tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 8}}):
        check([tt.UnrollLoop(), tt.Simplify()], before, unrolled)
    with tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 7}}):
        check(tt.UnrollLoop(), before, before)


def test_unroll_by_pragma_left_to_code_generation():
    A = buffer((4,))
    body = tir.AttrStmt(0, "pragma_unroll_explicit", 0, loop(4, lambda i: store(A, i, 1.0)))
    before = func([A], tir.AttrStmt(0, "pragma_auto_unroll_max_step", 16, body))
    check(tt.UnrollLoop(), before, func([A], loop(4, lambda i: store(A, i, 1.0), kind="unrolled")))


def test_unrolled_copies_define_variables_of_their_own():
    A = buffer((8,))
    before = func(
        [A], loop(2, lambda i: loop(4, lambda j: store(A, i * 4 + j, 1.0), "j"), kind="unrolled")
    )
    assert tir.analysis.verify_ssa(apply(tt.UnrollLoop(), before))


@pytest.mark.parametrize("marked", [False, True])
def test_loops_with_jumps_are_not_unrolled(marked):
    @T.prim_func
    def before(A: T.Buffer((4,), "int32")):
        T.attr(T.int32(0), "pragma_auto_unroll_max_step", 16)
        for i in range(4):
            if A[i] > 0:
                T.continue_loop()
            A[i] = 1

    mod = tvm.IRModule({"main": before})
    if marked:
        mod = tir.transform.AnnotateIrregularLoop()(mod)
    mod = tir.transform.UnrollLoop()(mod)
    values = np.array([0, 5, 0, 7], "int32")
    tir.interpret(mod)(values)
    assert values.tolist() == [1, 5, 1, 7]


def test_a_loop_that_something_leaves_is_serial_whatever_was_asked():
    A = buffer((4,), "int32")
    body = lambda i: seq(when(A[i] > 0, tir.Evaluate(tir.break_loop())), store(A, i, 1))
    check(
        tt.UnrollLoop(),
        func([A], loop(4, body, kind="unrolled")),
        func([A], loop(4, body)),
    )
