# SPDX-License-Identifier: Apache-2.0
"""Recurrences and statements as operations."""

import numpy as np
import pytest
import tvm
from tvm import te, tir
from tvm.script import tir as T
from tvm.tir import interpret


def run(func, *inputs, shape, dtype="float32"):
    out = np.zeros(shape, dtype)
    interpret(func)(*inputs, out)
    return out


def cumulative_sum(m, n):
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: X[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    return X, te.scan(init, update, state, inputs=[X], name="scan")


@pytest.mark.parametrize("symbolic", [False, True])
def test_scan(symbolic):
    m, n = (te.size_var("m"), te.size_var("n")) if symbolic else (5, 3)
    X, S = cumulative_sum(m, n)
    assert isinstance(S.op, te.ScanOp) and S.name == "scan"
    x = np.random.default_rng(0).standard_normal((5, 3)).astype("float32")
    out = run(te.create_prim_func([X, S]), x, shape=(5, 3))
    np.testing.assert_allclose(out, np.cumsum(x, 0), rtol=1e-5)


def test_result_of_a_scan_is_a_tensor_like_any_other():
    X, S = cumulative_sum(5, 3)
    Y = te.compute((5, 3), lambda t, i: S[t, i] * 2, name="Y")
    func = te.create_prim_func([X, Y])
    assert [b.name for b in func.body.block.alloc_buffers].count("scan") == 1
    x = np.arange(15, dtype="float32").reshape(5, 3)
    np.testing.assert_allclose(run(func, x, shape=(5, 3)), np.cumsum(x, 0) * 2)


def test_scan_with_a_stage_inside_the_step():
    X = te.placeholder((6, 3), name="X")
    W = te.placeholder((3, 3), name="W")
    state = te.placeholder((6, 3), name="state")
    k = te.reduce_axis((0, 3), name="k")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    mixed = te.compute((6, 3), lambda t, i: te.sum(state[t - 1, k] * W[k, i], axis=k), name="mixed")
    update = te.compute((6, 3), lambda t, i: mixed[t, i] + X[t, i], name="update")
    S = te.scan(init, update, state, inputs=[X, W])
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype("float32") for s in ((6, 3), (3, 3)))
    expected = x.copy()
    for t in range(1, 6):
        expected[t] = expected[t - 1] @ w + x[t]
    out = run(te.create_prim_func([X, W, S]), x, w, shape=(6, 3))
    np.testing.assert_allclose(out, expected, rtol=1e-4)


def test_scan_of_two_states():
    n = 8
    a_state, b_state = (te.placeholder((n,), "int32", name) for name in ("a", "b"))
    zero = te.compute((2,), lambda t: tir.Cast("int32", t), name="zero")
    a_next = te.compute((n,), lambda t: a_state[t - 1] + b_state[t - 2], name="a_next")
    b_next = te.compute((n,), lambda t: a_next[t] + 1, name="b_next")
    A, B = te.scan([zero, zero], [a_next, b_next], [a_state, b_state])
    func = te.create_prim_func([A, B])
    a, b = np.zeros(n, "int32"), np.zeros(n, "int32")
    interpret(func)(a, b)
    x, y = [0, 1], [0, 1]
    for t in range(2, n):
        x.append(x[t - 1] + y[t - 2])
        y.append(x[t] + 1)
    assert list(a) == x and list(b) == y


def test_extern_with_a_statement():
    A = te.placeholder((4,), name="A")

    def fill(ins, outs):
        i = te.var("i")
        return tir.For(i, 0, 4, 0, tir.BufferStore(outs[0], ins[0][i] * 3.0, [i]))

    B = te.extern((4,), [A], fill, name="B")
    assert isinstance(B.op, te.ExternOp) and B.dtype == "float32" and list(B.op.inputs) == [A]
    C = te.compute((4,), lambda i: B[i] + 1, name="C")
    a = np.arange(4, dtype="float32")
    np.testing.assert_allclose(run(te.create_prim_func([A, C]), a, shape=(4,)), a * 3 + 1)


def test_extern_with_a_packed_call():
    @tvm.register_global_func("test.te.double", override=True)
    def double(source, target):
        np.from_dlpack(target)[:] = np.from_dlpack(source) * 2

    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.extern(
        (n,), [A], lambda ins, outs: tir.call_packed("test.te.double", ins[0], outs[0]), name="B"
    )
    a = np.arange(5, dtype="float32")
    np.testing.assert_allclose(run(te.create_prim_func([A, B]), a, shape=(5,)), a * 2)


def test_extern_of_several_outputs():
    A = te.placeholder((4,), name="A")

    def fill(ins, outs):
        i = te.var("i")
        stores = [
            tir.BufferStore(outs[0], ins[0][i] + 1.0, [i]),
            tir.BufferStore(outs[1], tir.Cast("int32", ins[0][i]), [i]),
        ]
        return tir.For(i, 0, 4, 0, tir.SeqStmt(stores))

    B, C = te.extern([(4,), (4,)], [A], fill, dtype=["float32", "int32"])
    a, b, c = np.arange(4, dtype="float32"), np.zeros(4, "float32"), np.zeros(4, "int32")
    interpret(te.create_prim_func([A, B, C]))(a, b, c)
    np.testing.assert_allclose(b, a + 1)
    np.testing.assert_array_equal(c, a.astype("int32"))


def test_extern_with_buffers_of_the_user():
    A = te.placeholder((4, 4), name="A")
    stride, offset = te.var("stride"), te.var("offset")
    view = tir.decl_buffer((4, 4), "float32", "view", strides=[stride, 1], elem_offset=offset)

    def fill(ins, outs):
        i, j = te.var("i"), te.var("j")
        value = ins[0][i, j] + tir.Cast("float32", stride + offset)
        inner = tir.For(j, 0, 4, 0, tir.BufferStore(outs[0], value, [i, j]))
        return tir.For(i, 0, 4, 0, inner)

    B = te.extern((4, 4), [A], fill, in_buffers=[view], name="B")
    a = np.arange(16, dtype="float32").reshape(4, 4)
    np.testing.assert_allclose(run(te.create_prim_func([A, B]), a, shape=(4, 4)), a + 4)


def scale_function(n):
    A = te.placeholder((n,), name="A")
    return te.create_prim_func([A, te.compute((n,), lambda i: A[i] * 5, name="B")])


@pytest.mark.parametrize("n", [4, te.size_var("n")], ids=["static", "dynamic"])
def test_extern_primfunc(n):
    X = te.placeholder((4,), name="X")
    Y = te.compute((4,), lambda i: X[i] + 1, name="Y")
    Z = te.extern_primfunc([Y], scale_function(n), name="Z")
    assert [int(e) for e in Z.shape] == [4]
    x = np.arange(4, dtype="float32")
    np.testing.assert_allclose(run(te.create_prim_func([X, Z]), x, shape=(4,)), (x + 1) * 5)


def test_extern_primfunc_used_twice():
    f = scale_function(4)
    X = te.placeholder((4,), name="X")
    Z = te.extern_primfunc([te.extern_primfunc([X], f)], f)
    func = te.create_prim_func([X, Z])
    x = np.arange(4, dtype="float32")
    np.testing.assert_allclose(run(func, x, shape=(4,)), x * 25)


def test_extern_primfunc_reads_what_it_changes():
    """A buffer that is read is an input, even if it is written; without any other the last one is
    the output."""

    @T.prim_func
    def both(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("both"):
                v = T.axis.spatial(4, i)
                B[v] = A[v] + T.float32(1)
                A[v] = T.float32(0)

    X = te.placeholder((4,), name="X")
    Y = te.extern_primfunc([X], both)
    assert list(Y.op.inputs) == [X] and Y.op.num_outputs == 1

    @T.prim_func
    def in_place(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("in_place"):
                v = T.axis.spatial(4, i)
                B[v] = B[v] + A[v]

    assert te.extern_primfunc([X], in_place).op.num_outputs == 1
