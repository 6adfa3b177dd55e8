# SPDX-License-Identifier: Apache-2.0
"""Removes statements that do nothing."""

import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, store, when


def test_remove_no_op():
    A, n = buffer((8,)), tir.Var("n", "int32")
    nothing = tir.Evaluate(0)
    for body in (
        loop(8, lambda i: nothing),
        loop(0, lambda i: store(A, i, 1.0)),
        loop(8, lambda i: when(i < n, store(A, i, A[i]))),
        tir.LetStmt(tir.Var("x", "int32"), n + 1, nothing),
        when(n > 0, nothing, nothing),
    ):
        check(tt.RemoveNoOp(), func([A, n], body), func([A, n], nothing))


def test_remove_no_op_keeps_effects():
    A = buffer((8,))
    call = tir.Evaluate(tir.call_extern("int32", "f"))
    check(tt.RemoveNoOp(), func([A], loop(8, lambda i: call)), func([A], loop(8, lambda i: call)))


DATAFLOW = {"tir.RemoveNoOp": {"use_dataflow_analysis": True}}


def test_store_that_is_read_stays():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)
        B[0] = A[3]
        for i in range(8):
            A[i] = T.float32(2)

    tvm.ir.assert_structural_equal(apply(tt.RemoveNoOp(), before, **DATAFLOW), before)


def test_store_of_other_elements_stays():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)
        for i in range(7):
            A[i] = T.float32(2)

    tvm.ir.assert_structural_equal(apply(tt.RemoveNoOp(), before, **DATAFLOW), before)


def test_store_that_the_next_one_reads_stays():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)
        for i in range(8):
            A[i] = A[i] + T.float32(2)

    tvm.ir.assert_structural_equal(apply(tt.RemoveNoOp(), before, **DATAFLOW), before)
