# SPDX-License-Identifier: Apache-2.0
"""Splits loops so that conditions which hold in most iterations need not be tested there."""

import numpy as np
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, store, when


def test_partition_dynamic_loop():
    A, n = buffer((64,)), tir.Var("n", "int32")
    before = func(
        [A, n],
        loop(
            tir.floordiv(n + 3, 4),
            lambda i: loop(4, lambda j: when(i * 4 + j < n, store(A, i * 4 + j, 1.0)), "j"),
        ),
    )
    result = apply(tt.LoopPartition(), before)
    main, tail = result.body
    assert isinstance(main.body.body, tir.BufferStore), "the main loop has no condition"
    assert isinstance(tail.body.body, tir.IfThenElse)
    assert tir.analysis.verify_ssa(result)


def test_partition_constant_loop_only_on_demand():
    A = buffer((64,))
    before = func(
        [A],
        loop(4, lambda i: loop(4, lambda j: when(i * 4 + j < 14, store(A, i * 4 + j, 1.0)), "j")),
    )
    check(tt.LoopPartition(), before, before)
    with tvm.transform.PassContext(config={"tir.LoopPartition": {"partition_const_loop": True}}):
        main, tail = apply([tt.LoopPartition(), tt.Simplify()], before).body
    # A single iteration of the outer loop is left: its body, the inner loop.
    assert (int(main.extent), int(tail.extent)) == (3, 4)
    assert tail.loop_var.name == "j"
    assert isinstance(main.body.body, tir.BufferStore)


def test_loops_with_jumps_are_not_partitioned():
    """A break would leave the first part only."""

    @T.prim_func
    def before(A: T.Buffer((8,), "int32")):
        for i in range(8):
            if T.likely(i < 5):
                A[i] = 1
            if A[7] > 0:
                T.break_loop()

    mod = tt.LoopPartition(partition_const_loop=True)(tvm.IRModule({"main": before}))
    values = np.array([0] * 7 + [1], "int32")
    tir.interpret(mod)(values)
    assert values.tolist() == [1] + [0] * 6 + [1]
