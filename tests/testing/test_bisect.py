# SPDX-License-Identifier: Apache-2.0
"""The pass that changed a result is found, and only that."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T


@T.prim_func
def scale(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int32")):
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2


def replacing(old, new):
    @tir.transform.prim_func_pass(opt_level=0, name="Replace")
    def replace(func, mod, ctx):
        def change(node):
            return tir.IntImm("int32", new) if node.value == old else None

        body = tir.stmt_functor.ir_transform(func.body, None, change, ["ir.IntImm"])
        return func.with_body(body)

    return replace


def arguments():
    return [np.arange(32, dtype="int32").reshape(4, 8), np.zeros((4, 8), "int32")]


def test_a_right_pipeline():
    args = arguments()
    assert tvm.testing.first_wrong_pass(scale, args) is None
    assert not args[1].any(), "the arguments are left alone"


def test_the_wrong_pass_and_its_programs():
    simplify = tir.transform.Simplify()
    wrong = tvm.testing.first_wrong_pass(
        scale, arguments(), passes=[simplify, replacing(2, 3), simplify]
    )
    assert wrong.name == "Replace"
    assert str(wrong) == "after Replace: argument 1[0, 1] is 3, was 2"
    assert "* 2" in wrong.before.script() and "* 3" in wrong.after.script()


@pytest.mark.parametrize("new, error", [(9, "IndexError"), (0, "argument 1")])
def test_a_program_that_fails_afterwards(new, error):
    wrong = tvm.testing.first_wrong_pass(scale, arguments(), passes=[replacing(8, new)])
    assert wrong.name == "Replace" and error in wrong.difference
