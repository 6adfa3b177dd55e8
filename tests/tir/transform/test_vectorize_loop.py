# SPDX-License-Identifier: Apache-2.0
"""Vectorized loops become operations on vectors."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, seq, store, when


def _ramp(base, lanes=4, stride=1):
    return tir.Ramp(base, stride, lanes)


def _vectorized(extent, body, **kwargs):
    return loop(extent, body, kind="vectorized", **kwargs)


def test_contiguous_access_becomes_a_ramp():
    A, B = buffer((64,), name="A"), buffer((64,), name="B")
    before = func(
        [A, B],
        loop(16, lambda j: _vectorized(4, lambda i: store(B, j * 4 + i, A[j * 4 + i] + 1.0)), "j"),
    )
    expected = func(
        [A, B],
        loop(
            16,
            lambda j: tir.BufferStore(
                B,
                tir.BufferLoad(A, [_ramp(j * 4 + 0)]) + tir.Broadcast(tir.const(1.0, "float32"), 4),
                [_ramp(j * 4 + 0)],
            ),
            "j",
        ),
    )
    check([tt.VectorizeLoop(), tt.Simplify()], before, apply(tt.Simplify(), expected))


def test_words_next_to_each_other_become_a_longer_run():
    A, B = buffer((32,), "uint8", name="A"), buffer((8,), "uint32", name="B")

    def words(base, bytes_, dtype):
        return tir.reinterpret(dtype, tir.BufferLoad(A, [_ramp(base, bytes_)]))

    before = func([A, B], _vectorized(8, lambda i: store(B, i, words(i * 4, 4, "uint32"))))
    expected = func([A, B], tir.BufferStore(B, words(0, 32, "uint32x8"), [_ramp(0, 8)]))
    check([tt.VectorizeLoop(), tt.Simplify()], before, apply(tt.Simplify(), expected))


@pytest.mark.parametrize("step", [2, 8])
def test_words_apart_run_one_by_one(step):
    A, B = buffer((64,), "uint8", name="A"), buffer((8,), "uint32", name="B")
    word = lambda i: tir.reinterpret("uint32", tir.BufferLoad(A, [_ramp(i * step, 4)]))
    before = func([A, B], _vectorized(8, lambda i: store(B, i, word(i))))
    x = np.arange(64, dtype="uint8")
    got, expected = np.zeros(8, "uint32"), np.zeros(8, "uint32")
    tir.interpret(before)(x, expected)
    tir.interpret(apply(tt.VectorizeLoop(), before))(x, got)
    np.testing.assert_array_equal(got, expected)
    bytes_ = np.stack([x[i * step : i * step + 4] for i in range(8)])
    np.testing.assert_array_equal(got, bytes_.view("uint32")[:, 0])


def test_disabled_becomes_serial():
    A = buffer((4,))
    before = func([A], _vectorized(4, lambda i: store(A, i, 1.0)))
    check(tt.VectorizeLoop(False), before, func([A], loop(4, lambda i: store(A, i, 1.0))))


def test_uniform_branch_stays_a_branch():
    A, n = buffer((4,)), tir.Var("n", "int32")
    before = func([A, n], _vectorized(4, lambda i: when(n > 2, store(A, i, 1.0))))
    expected = func(
        [A, n],
        when(n > 2, tir.BufferStore(A, tir.Broadcast(tir.const(1.0, "float32"), 4), [_ramp(0)])),
    )
    check(tt.VectorizeLoop(), before, expected)


def test_condition_of_lanes_runs_lane_by_lane_without_predication():
    A, n = buffer((4,)), tir.Var("n", "int32")
    before = func([A, n], _vectorized(4, lambda i: when(i < n, store(A, i, 1.0))))
    expected = func([A, n], loop(4, lambda i: when(0 + i < n, store(A, 0 + i, 1.0))))
    with tvm.transform.PassContext(config={"tir.enable_buffer_level_predication": False}):
        check(tt.VectorizeLoop(), before, expected)


@pytest.mark.parametrize("size, is_masked", [("m", True), (4, False)])
def test_condition_of_lanes_becomes_a_predicate(size, is_masked):
    """A load that is inside of its buffer anyway needs none."""
    n = tir.Var("n", "int32")
    A = buffer((tir.Var("m", "int32") if size == "m" else size,), name="A")
    B = buffer((4,), name="B")
    before = func([A, B, n], _vectorized(4, lambda i: when(i < n, store(B, i, A[i]))))
    mask = tir.LT(_ramp(0), tir.Broadcast(n, 4))
    load = tir.BufferLoad(A, [_ramp(0)], mask if is_masked else None)
    expected = func([A, B, n], tir.BufferStore(B, load, [_ramp(0)], mask))
    with tvm.transform.PassContext(config={"tir.enable_buffer_level_predication": True}):
        check(tt.VectorizeLoop(), before, expected)


def test_load_of_one_element_under_a_predicate_is_guarded():
    """B[0] may not exist where no lane is active."""
    m, n = tir.Var("m", "int32"), tir.Var("n", "int32")
    A, B = buffer((4,), name="A"), buffer((m,), name="B")
    before = func([A, B, n], _vectorized(4, lambda i: when(i < n, store(A, i, B[0]))))
    mask = tir.LT(_ramp(0), tir.Broadcast(n, 4))
    value = tir.Broadcast(tir.BufferLoad(B, [0]), 4)
    expected = func([A, B, n], when(tir.LT(0, n), tir.BufferStore(A, value, [_ramp(0)], mask)))
    with tvm.transform.PassContext(config={"tir.enable_buffer_level_predication": True}):
        check(tt.VectorizeLoop(), before, expected)


def test_guarded_load_gets_the_condition():
    A, B = buffer((6,), name="A"), buffer((4,), name="B")
    zero = tir.const(0.0, "float32")
    before = func(
        [A, B], _vectorized(4, lambda i: store(B, i, tir.if_then_else(i > 0, A[i - 1], zero)))
    )
    mask = tir.GT(_ramp(0), tir.Broadcast(0, 4))
    load = tir.BufferLoad(A, [_ramp(-1)], mask)
    expected = func(
        [A, B], tir.BufferStore(B, tir.Select(mask, load, tir.Broadcast(zero, 4)), [_ramp(0)])
    )
    with tvm.transform.PassContext(config={"tir.enable_buffer_level_predication": True}):
        check(tt.VectorizeLoop(), before, expected)


def test_one_place_for_all_lanes_runs_in_order():
    """A sum into one element is not what a vector store would do."""
    A, C = buffer((4,), name="A"), buffer((1,), name="C")
    before = func([A, C], _vectorized(4, lambda i: store(C, 0, C[0] + A[i])))
    check(tt.VectorizeLoop(), before, func([A, C], loop(4, lambda i: store(C, 0, C[0] + A[0 + i]))))


def test_call_with_effect_runs_for_each_lane():
    A = buffer((4,))
    call = lambda i: tir.Evaluate(tir.call_extern("int32", "f", i))
    before = func([A], _vectorized(4, lambda i: seq(call(i), store(A, i, 1.0))))
    result = apply(tt.VectorizeLoop(), before)
    assert [type(s).__name__ for s in result.body] == ["For", "BufferStore"]


def test_memory_inside_gets_an_element_for_each_lane():
    A, T, B = buffer((4,), name="A"), buffer((1,), name="T"), buffer((4,), name="B")
    before = func(
        [A, B],
        _vectorized(
            4,
            lambda i: tir.Allocate(
                T.data,
                "float32",
                [1],
                tir.const(True),
                tir.DeclBuffer(T, seq(store(T, 0, A[i] + 1.0), store(B, i, T[0] * 2.0))),
            ),
        ),
    )
    result = apply(tt.VectorizeLoop(), before)
    assert int(result.body.extents[0]) == 4
    first, second = result.body.body.body
    tvm.ir.assert_structural_equal(first.indices[0], _ramp(0))
    tvm.ir.assert_structural_equal(second.value.a.indices[0], _ramp(0))


def test_quotients_of_aligned_ramps_stay_simple():
    A, B = buffer((64,), name="A"), buffer((8,), name="B")
    before = func(
        [A, B],
        loop(
            16,
            lambda j: _vectorized(4, lambda i: store(A, j * 4 + i, B[tir.floordiv(j * 4 + i, 8)])),
            "j",
        ),
    )
    result = apply(tt.VectorizeLoop(), before)
    assert isinstance(result.body.body.value.indices[0], tir.Broadcast) or isinstance(
        result.body.body.value, tir.Broadcast
    )


def test_extent_must_be_constant():
    A, n = buffer((64,)), tir.Var("n", "int32")
    with pytest.raises(ValueError, match="VectorizeLoop: expected a constant extent .* loop i"):
        apply(tt.VectorizeLoop(), func([A, n], _vectorized(n, lambda i: store(A, i, 1.0))))


def test_scalable_vectors():
    A = buffer((64,))
    lanes = tir.vscale() * 4
    before = func([A], _vectorized(lanes, lambda i: store(A, i, 1.0)))
    result = apply(tt.VectorizeLoop(), before)
    assert result.body.value.dtype == "float32xvscalex4"


@pytest.mark.parametrize("jump", [tir.continue_loop, tir.break_loop])
def test_a_loop_with_jumps_runs_for_each_lane(jump):
    """A jump leaves the loop it is in, not one over lanes."""

    @T.prim_func
    def before(B: T.Buffer((4, 4), "int32"), C: T.Buffer((3,), "int32")):
        for p in T.vectorized(4):
            for i in range(3):
                if C[i] > p:
                    T.evaluate(jump())
                B[p, p] = i + 1

    mod = tvm.IRModule({"main": before})
    results = []
    for program in (mod, tt.VectorizeLoop()(mod)):
        results.append(np.zeros((4, 4), "int32"))
        tir.interpret(program)(results[-1], np.array([1, 3, 2], "int32"))
    np.testing.assert_array_equal(*results)
    assert results[0].any()


def test_cast_index_stays_contiguous():
    """A loop over int64 whose index was made narrower still reads and writes vectors."""
    A, B = buffer((64,), name="A"), buffer((64,), name="B")

    def body(i):
        index = tir.Cast("int32", i)
        return store(B, index, A[index])

    i = tir.Var("i", "int64")
    zero, four = tir.const(0, "int64"), tir.const(4, "int64")
    before = func([A, B], tir.For(i, zero, four, tir.ForKind.VECTORIZED, body(i)))
    vector = _ramp(tir.const(0, "int32"))
    expected = func([A, B], tir.BufferStore(B, tir.BufferLoad(A, [vector]), [vector]))
    check([tt.VectorizeLoop(), tt.Simplify()], before, expected)
