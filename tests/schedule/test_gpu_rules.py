# SPDX-License-Identifier: Apache-2.0
"""Default rules for GPUs: what they make of functions, run by the interpreter thread by thread."""

import numpy as np
import pytest
import tvm
from tvm import te, tir, topi
from tvm.script import tir as T

from tests.fuzz.steps import check_all_steps

TARGET = {"kind": "cuda", "arch": "sm_80"}
RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype("float32")


def scheduled(func):
    """The function after the default rules."""
    func = func.with_attr("target", tvm.target.Target(TARGET))
    mod = tir.transform.DefaultSchedule()(tvm.IRModule({"main": func}))
    return mod["main"].without_attr("target")


def check(func, *inputs):
    """Runs it as scheduled and lowered; gives the last array and the text of the schedule."""
    ready = scheduled(func)
    mod = check_all_steps(ready, inputs, TARGET)
    return mod, ready.script()


def compute(shape, f, *inputs):
    placeholders = [
        te.placeholder(i.shape, str(i.dtype), name=f"A{n}") for n, i in enumerate(inputs)
    ]
    result = te.compute(shape, lambda *i: f(*placeholders, *i), name="B")
    return te.create_prim_func([*placeholders, result])


@pytest.mark.parametrize("shape", [(1,), (7,), (300,), (16, 20), (3, 5, 8)])
def test_elements_have_threads(shape):
    a = floats(*shape)
    func = compute(shape, lambda A, *i: A(*i) * 2 + 1, a)
    _, text = check(func, a, np.full(shape, 7, "float32"))
    assert "T.thread_binding(" in text and '"threadIdx.x"' in text
    assert ("T.vectorized(4)" in text) == (shape[-1] % 4 == 0)


def test_a_transpose_is_not_in_vectors():
    a = floats(16, 8)
    func = compute((8, 16), lambda A, i, j: A[j, i], a)
    _, text = check(func, a, np.zeros((8, 16), "float32"))
    assert "vectorized" not in text


@pytest.mark.parametrize("shape", [(2, 64), (2, 40), (1, 300)])
def test_a_run_of_memory_is_added_up_by_threads_together(shape):
    a = floats(*shape)
    k = te.reduce_axis((0, shape[1]), name="k")
    func = compute((shape[0],), lambda A, i: te.sum(A[i, k], axis=k), a)
    mod, _ = check(func, a, np.zeros(shape[0], "float32"))
    text = mod["main_kernel"].script()
    assert "tvm_warp_shuffle" in text
    assert ("tvm_storage_sync" in text) == (shape[1] > 256), "several warps meet in shared memory"


def test_a_run_of_small_floats_is_added_up_in_float32():
    a = floats(1, 512).astype("float16")
    k = te.reduce_axis((0, 512), name="k")
    func = compute((1,), lambda A, i: te.sum(A[i, k], axis=k), a)
    b = np.zeros(1, "float16")
    mod, text = check(func, a, b)
    assert "B_wide_local = T.alloc_buffer((1,), scope=" in text and "T.vectorized(8)" in text


def test_a_column_is_added_up_by_one_thread():
    a = floats(64, 8)
    k = te.reduce_axis((0, 64), name="k")
    func = compute((8,), lambda A, i: te.sum(A[k, i], axis=k), a)
    mod, _ = check(func, a, np.zeros(8, "float32"))
    assert "shuffle" not in mod["main_kernel"].script()


def test_a_long_column_is_added_up_in_parts():
    a = floats(256, 3)
    k = te.reduce_axis((0, 256), name="k")
    func = compute((3,), lambda A, i: te.sum(A[k, i], axis=k), a)
    _, text = check(func, a, np.zeros(3, "float32"))
    assert '"threadIdx.y"' in text


@pytest.mark.parametrize("find", ["argmax", "argmin"])
@pytest.mark.parametrize("shape, axis", [((8, 64), 1), ((600, 3), 0), ((300, 7), 1)])
def test_where_the_best_of_many_is(find, shape, axis):
    a = floats(*shape)
    a[5, 2] = np.nan
    A = te.placeholder(shape, name="A")
    func = te.create_prim_func([A, getattr(topi, find)(A, axis)])
    expected = getattr(np, find)(a, axis).astype("int32")
    out = np.zeros(expected.shape, "int32")
    mod, _ = check(func, a, out)
    tvm.tir.interpret(mod)(a, out)
    np.testing.assert_array_equal(out, expected)


def softmax(n, m):
    A = te.placeholder((n, m), name="A")
    k, k2 = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="k2")
    high = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="high")
    e = te.compute((n, m), lambda i, j: te.exp(A[i, j] - high[i]), name="e")
    total = te.compute((n,), lambda i: te.sum(e[i, k2], axis=k2), name="total")
    return te.create_prim_func([A, te.compute((n, m), lambda i, j: e[i, j] / total[i], name="B")])


def test_rows_stay_in_one_kernel():
    a = floats(3, 100)
    mod, text = check(softmax(3, 100), a, np.zeros_like(a))
    assert len(mod.functions) == 2 and 'scope="shared"' in text


@pytest.mark.parametrize("m, n, k", [(64, 64, 16), (5, 9, 7)])
def test_a_product_runs_through_a_ring_in_shared_memory(m, n, k):
    """Also one whose edges are inside of the only tile: copies are guarded there."""
    axis = te.reduce_axis((0, k), name="k")
    func = compute(
        (m, n),
        lambda A, B, i, j: te.sum(A[i, axis] * B[axis, j], axis=axis),
        floats(m, k),
        floats(k, n),
    )
    text = scheduled(func).script()
    assert (
        text.count('scope="shared.dyn"') >= 1
        and 'sums = T.alloc_buffer((16,), scope="local")' in text
    )
    copies = [line for line in text.splitlines() if "ptx_cp_async" in line]
    assert copies and all((f"< {m}" in c or f"< {n}" in c) for c in copies) == (m == 5)


def test_one_number():
    a = floats(50)
    k = te.reduce_axis((0, 50), name="k")
    func = compute((), lambda A: te.sum(A[k], axis=k), a)
    check(func, a, np.zeros((), "float32"))


@T.prim_func
def running_sum(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
    with T.block("first"):
        B[0] = A[0]
    for i in range(9):
        with T.block("next"):
            v = T.axis.opaque(10, i + 1)
            T.reads(A[v], B[v - 1])
            T.writes(B[v])
            B[v] = B[v - 1] + A[v]


def test_an_order_that_matters_is_kept():
    a = floats(10)
    check(running_sum, a, np.zeros(10, "float32"))


def test_what_is_scheduled_stays():
    sch = tvm.tir.Schedule(softmax(4, 8))
    loop = sch.get_loops(sch.get_block("high"))[0]
    sch.bind(loop, "blockIdx.x")
    func = sch.mod["main"]
    assert tvm.ir.structural_equal(scheduled(func), func)
