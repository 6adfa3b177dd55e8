# SPDX-License-Identifier: Apache-2.0
"""Canonical loops, unrolling, partitioning, hoisting, removal."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, seq, store, when


def test_canonicalize_loop_begins_at_zero_with_step_one():
    A = buffer((16,))
    before = func([A], loop(8, lambda i: store(A, i, 1.0), begin=2, step=4))
    check(tt.CanonicalizeLoop(), before, func([A], loop(2, lambda i: store(A, i * 4 + 2, 1.0))))


def test_canonicalize_loop_symbolic_step():
    A, n, s = buffer((16,)), tir.Var("n", "int32"), tir.Var("s", "int32")
    before = func([A, n, s], loop(n, lambda i: store(A, i, 1.0), step=s))
    result = apply(tt.CanonicalizeLoop(), before)
    assert result.body.step is None
    tvm.ir.assert_structural_equal(result.body.body.indices[0], result.body.loop_var * s)


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
    assert (int(main.extent), int(tail.extent)) == (3, 1)
    assert isinstance(main.body.body, tir.BufferStore)


def test_hoist_condition_out_of_the_loop():
    A, n = buffer((8,)), tir.Var("n", "int32")
    before = func([A, n], loop(8, lambda i: when(n > 4, store(A, i, 1.0))))
    check(
        tt.HoistIfThenElse(), before, func([A, n], when(n > 4, loop(8, lambda i: store(A, i, 1.0))))
    )


def test_condition_that_reads_memory_stays():
    A, B = buffer((8,)), buffer((8,), name="B")
    before = func([A, B], loop(8, lambda i: when(B[0] > 0.0, store(A, i, 1.0))))
    check(tt.HoistIfThenElse(), before, before)


def test_hoist_what_the_first_iteration_begins_with():
    A, C = buffer((8,)), buffer((1,), name="C")

    def total(k):
        return store(C, 0, C[0] + A[k])

    before = func([A, C], loop(8, lambda k: seq(when(k == 0, store(C, 0, 0.0)), total(k))))
    check(tt.HoistIfThenElse(), before, func([A, C], seq(store(C, 0, 0.0), loop(8, total))))


def test_hoist_the_beginning_of_nested_reductions():
    """A sum of indices is 0 where each is."""
    A, C = buffer((8,)), buffer((1,), name="C")

    def total(k, j):
        return store(C, 0, C[0] + A[k * 4 + j])

    def nest(body):
        return loop(2, lambda k: loop(4, lambda j: body(k, j), "j"), "k")

    before = func(
        [A, C], nest(lambda k, j: seq(when(k * 4 + j == 0, store(C, 0, 0.0)), total(k, j)))
    )
    check(tt.HoistIfThenElse(), before, func([A, C], seq(store(C, 0, 0.0), nest(total))))


def test_hoist_the_beginning_of_a_loop_that_may_not_run():
    A, C, n = buffer((8,)), buffer((1,), name="C"), tir.Var("n", "int32")

    def total(k):
        return store(C, 0, C[0] + A[k])

    before = func([A, C, n], loop(n, lambda k: seq(when(k == 0, store(C, 0, 0.0)), total(k))))
    check(
        tt.HoistIfThenElse(),
        before,
        func([A, C, n], seq(when(n > 0, store(C, 0, 0.0)), loop(n, total))),
    )


def test_hoist_let_binding():
    A, n, x = buffer((8,)), tir.Var("n", "int32"), tir.Var("x", "int32")
    before = func([A, n], loop(8, lambda i: tir.LetStmt(x, n * 2, store(A, i + x, 1.0))))
    check(
        tt.HoistExpression(),
        before,
        func([A, n], tir.LetStmt(x, n * 2, loop(8, lambda i: store(A, i + x, 1.0)))),
    )


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


def test_simplify_uses_loops_and_conditions():
    A, n = buffer((64,)), tir.Var("n", "int32")
    before = func([A, n], loop(16, lambda i: when(i < 20, store(A, tir.floordiv(i * 4, 4), 1.0))))
    check(tt.Simplify(), before, func([A, n], loop(16, lambda i: store(A, i, 1.0))))
    before = func([A, n], when(n < 4, when(n < 8, store(A, 0, 1.0), store(A, 0, 2.0))))
    check(tt.Simplify(), before, func([A, n], when(n < 4, store(A, 0, 1.0))))


def test_what_holds_in_a_loop_does_not_hold_after_it():
    A, n = buffer((64,)), tir.Var("n", "int32")
    before = func([A, n], seq(loop(n, lambda i: store(A, i, 1.0)), when(n > 0, store(A, 0, 2.0))))
    assert isinstance(apply(tt.Simplify(), before).body[1], tir.IfThenElse)


def test_renormalize_split_pattern():
    A, x = buffer((64,)), tir.Var("x", "int32")
    before = func([A, x], store(A, tir.floordiv(tir.floormod(x, 64), 8), 1.0))
    check(
        tt.RenormalizeSplitPattern(),
        before,
        func([A, x], store(A, tir.floormod(tir.floordiv(x, 8), 8), 1.0)),
    )


def test_narrow_data_type():
    A = buffer((512,))
    before = func(
        [A],
        loop(
            tir.const(128, "int64"),
            lambda i: store(A, i * tir.const(4, "int64"), 1.0),
            dtype="int64",
        ),
    )
    check(tt.NarrowDataType(32), before, func([A], loop(128, lambda i: store(A, i * 4, 1.0))))


def test_narrow_data_type_keeps_what_does_not_fit():
    A = buffer((tir.const(1 << 40, "int64"),))
    step = tir.const(1 << 30, "int64")
    before = func(
        [A], loop(tir.const(1 << 10, "int64"), lambda i: store(A, i * step, 1.0), dtype="int64")
    )
    check(tt.NarrowDataType(32), before, before)


def test_narrow_data_type_casts_where_values_are_wide():
    """int64 data computed from a narrowed variable is the same int64."""
    A = buffer((128,), "int64")
    before = func(
        [A],
        loop(
            tir.const(128, "int64"),
            lambda i: store(A, i, i * tir.const(1 << 40, "int64")),
            dtype="int64",
        ),
    )
    result = apply(tt.NarrowDataType(32), before)
    assert result.body.loop_var.dtype == "int32"
    assert result.body.body.value.dtype == "int64"


def test_narrow_data_type_rejects_odd_widths():
    A = buffer((8,))
    with pytest.raises(ValueError, match="expected target_bits 8, 16 or 32, got 24"):
        apply(tt.NarrowDataType(24), func([A], store(A, 0, 1.0)))


def test_predicates_use_the_narrow_variable():
    A = buffer((8,), "uint8")
    zeros = tir.Broadcast(tir.const(0, "uint8"), 3)

    def body(dtype):
        def masked(o):
            mask = tir.LT(
                tir.Ramp(o, tir.const(1, dtype), 3), tir.Broadcast(tir.const(1, dtype), 3)
            )
            place = tir.Ramp(tir.const(0, dtype), tir.const(1, dtype), 3)
            return tir.BufferStore(A, zeros, [place], mask)

        o = tir.Var("o", dtype)
        return tir.For(o, tir.const(0, dtype), tir.const(3, dtype), tir.ForKind.SERIAL, masked(o))

    check(tt.NarrowDataType(16), func([A], body("int32")), func([A], body("int16")))


def test_convert_ssa():
    A = buffer((4,))
    i = tir.Var("i", "int32")
    twice = tir.For(i, 0, 4, tir.ForKind.SERIAL, store(A, i, 1.0))
    before = func([A], seq(twice, twice))
    assert not tir.analysis.verify_ssa(before)
    result = apply(tt.ConvertSSA(), before)
    assert tir.analysis.verify_ssa(result)
    check(
        tt.ConvertSSA(),
        before,
        func([A], seq(*(loop(4, lambda i: store(A, i, 1.0)) for _ in range(2)))),
    )


def test_convert_for_loops_to_serial():
    A = buffer((4,))
    check(
        tt.ConvertForLoopsToSerial(),
        func([A], loop(4, lambda i: store(A, i, 1.0), kind="parallel")),
        func([A], loop(4, lambda i: store(A, i, 1.0))),
    )


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
