# SPDX-License-Identifier: Apache-2.0
"""What is known of memory ends where it may be written: conditions, bounds of loops, indices."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.testing.features import host_target
from tvm.tir import transform as tt


@T.prim_func
def stored_under_its_condition(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    if S[1] < 5:
        S[1] = S[1] + 7
        if S[1] < 5:
            R[0] = 1
        else:
            R[0] = 2


@T.prim_func
def stored_under_another_condition(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    if S[1] < 5:
        if S[0] == 0:
            S[1] = 9
        R[0] = T.if_then_else(S[1] < 5, 1, 2)


@T.prim_func
def stored_in_the_iteration_before(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    if S[1] < 5:
        for i in range(4):
            R[i] = T.if_then_else(S[1] < 5, 1, 2)
            S[1] = S[1] + 1


@T.prim_func
def stored_by_a_while_loop(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    if S[1] < 5:
        while S[0] < 3:
            if S[1] < 5:
                R[S[0]] = 1
            else:
                R[S[0]] = 2
            S[0] = S[0] + 1
            S[1] = S[1] + 1


@T.prim_func
def stored_through_a_view(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    if S[1] < 5:
        with T.block("view"):
            V = T.match_buffer(S[0:2], (2,), "int32", offset_factor=1)
            V[1] = 9
        R[0] = T.if_then_else(S[1] < 5, 1, 2)


@T.prim_func
def stored_by_an_init(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    for i in range(2):
        if S[1] < 5:
            with T.block("sum"):
                v = T.axis.reduce(2, i)
                with T.init():
                    S[1] = 7
                if S[1] < 5:
                    R[1] = R[1] + 10
                R[0] = R[0] + 1 + v
                S[1] = S[1] - 4


@T.prim_func
def bound_of_a_loop_changes(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    for i in range(S[1]):
        S[1] = 0
        if i < S[1]:
            R[0] = 1
        else:
            R[1] = R[1] + 1


@T.prim_func
def begin_of_a_loop_changes(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    for i in range(S[0], S[0] + 3):
        S[0] = 1
        R[i] = i + 1


@T.prim_func
def asserted_value_changes(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    assert S[1] < 5, "small"
    S[1] = 9
    R[0] = T.if_then_else(S[1] < 5, 1, 2)


@T.prim_func
def index_with_a_let(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    with T.block("root"):
        acc = T.alloc_buffer((4,), "int32")
        for t in range(16):
            r: T.int32 = t % 4
            if t < 4:
                acc[r] = 0
            acc[r] = acc[r] + t * S[1]
            if t >= 12:
                R[r] = acc[r]


@T.prim_func
def index_with_a_let_in_an_expression(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    x = T.int32()
    with T.block("root"):
        acc = T.alloc_buffer((4,), "int32")
        for t in range(4):
            acc[T.Let(x * 3 % 4, where={x: t})] = t + S[1]
        for t in range(4):
            R[t] = acc[t]


@T.prim_func
def index_from_memory(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    with T.block("root"):
        acc = T.alloc_buffer((4,), "int32")
        for t in range(4):
            acc[S[0]] = t * 2
            S[0] = S[0] + 1
        for t in range(4):
            R[t] = acc[t]


@T.prim_func
def index_bounded_by_memory(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    with T.block("root"):
        acc = T.alloc_buffer((8,), "int32")
        for i in range(8):
            if i < S[1]:
                S[1] = 8
                acc[i] = i
        for i in range(4):
            R[i] = acc[i + 2]


@T.prim_func
def buffer_of_an_inner_block(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
    for i in range(2):
        with T.block("outer"):
            vi = T.axis.spatial(2, i)
            acc = T.alloc_buffer((4,), "int32")
            for j in range(4):
                with T.block("inner"):
                    vj = T.axis.spatial(4, j)
                    acc[vj] = vj * 10 + vi
            for j in range(2):
                with T.block("use"):
                    vj = T.axis.spatial(2, j)
                    R[vi * 2 + vj] = acc[vj * 2 + vi] + S[1]


PROGRAMS = [f for f in list(globals().values()) if isinstance(f, tir.PrimFunc)]


def name(func):
    return str(func.attrs["global_symbol"])


def results(function):
    s, r = np.array([0, 3], "int32"), np.zeros(4, "int32")
    function(s, r)
    return np.concatenate([s, r])


@pytest.mark.parametrize("program", PROGRAMS, ids=name)
def test_compiled(program):
    expected = results(tir.interpret(program))
    got = results(tvm.compile(program, target=host_target()))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("program", PROGRAMS, ids=name)
@pytest.mark.parametrize(
    "one",
    [
        tt.Simplify(),
        tt.CompactBufferAllocation(),
        tt.CanonicalizeLoop(),
        tt.NarrowDataType(8),
        tt.LoopPartition(),
        tt.HoistExpression(),
        tt.RemoveNoOp(),
        tt.CommonSubexprElimTIR(),
        tt.ConvertBlocksToOpaque(),
    ],
    ids=lambda p: str(p.info.name),
)
def test_single_passes(program, one):
    if one.info.name == "tir.ConvertBlocksToOpaque":
        program = tt.LowerInitBlock()(tvm.IRModule({"main": program}))["main"]
    expected = results(tir.interpret(program))
    after = one(tvm.IRModule({"main": program}))["main"]
    np.testing.assert_array_equal(results(tir.interpret(after)), expected)


def test_the_interpreter_is_right():
    """By hand."""
    assert list(results(tir.interpret(stored_under_its_condition))) == [0, 10, 2, 0, 0, 0]
    assert list(results(tir.interpret(stored_in_the_iteration_before))) == [0, 7, 1, 1, 2, 2]
    assert list(results(tir.interpret(bound_of_a_loop_changes))) == [0, 0, 0, 3, 0, 0]
    assert list(results(tir.interpret(index_with_a_let))) == [0, 3, 72, 84, 96, 108]


def test_a_condition_holds_until_the_store():
    @T.prim_func
    def before(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
        if S[1] < 5:
            if S[1] < 6:
                R[0] = 1
            S[1] = 9
            if S[1] < 6:
                R[1] = 1

    @T.prim_func
    def expected(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
        if S[1] < 5:
            R[0] = 1
            S[1] = 9
            if S[1] < 6:
                R[1] = 1

    after = tt.Simplify()(tvm.IRModule({"main": before}))["main"]
    tvm.ir.assert_structural_equal(after, expected.with_attr("global_symbol", "before"))


def test_other_memory_may_be_written():
    @T.prim_func
    def before(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
        if S[1] < 5:
            R[0] = 1
            if S[1] < 6:
                R[1] = 1

    @T.prim_func
    def expected(S: T.Buffer((2,), "int32"), R: T.Buffer((4,), "int32")):
        if S[1] < 5:
            R[0] = 1
            R[1] = 1

    after = tt.Simplify()(tvm.IRModule({"main": before}))["main"]
    tvm.ir.assert_structural_equal(after, expected.with_attr("global_symbol", "before"))
