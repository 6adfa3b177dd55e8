# SPDX-License-Identifier: Apache-2.0
"""create_prim_func: the blocks it makes, and what they compute, by the interpreter."""

import numpy as np
import pytest
import tvm
from tvm import te, tir
from tvm.tir import interpret

KINDS = {0: "S", 2: "R", 3: "O"}


def statements(stmt):
    """All statements, parents first, without recursion: chains may be long."""
    stack = [stmt]
    while stack:
        stmt = stack.pop()
        yield stmt
        below = [getattr(stmt, name, None) for name in ("block", "init", "body", "then_case")]
        stack += reversed([s for s in below if s is not None] + list(getattr(stmt, "seq", ())))


def blocks(func):
    """Blocks below the root, in order."""
    found = [s for s in statements(func.body) if isinstance(s, tir.Block)]
    return [b for b in found if b.name_hint != "root"]


def kinds(block):
    return "".join(KINDS[iv.iter_type] for iv in block.iter_vars)


def names(block):
    return [str(iv.var.name) for iv in block.iter_vars]


def run(func, *inputs, outputs):
    """Runs the function on fresh outputs ((shape, dtype), ...) and gives them."""
    results = [np.zeros(shape, dtype) for shape, dtype in outputs]
    interpret(func)(*inputs, *results)
    return results[0] if len(results) == 1 else results


def random(*shape, dtype="float32"):
    rng = np.random.default_rng(0)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-9, 10, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def sigmoid(M, N, dtype="float32"):
    A = te.placeholder((M, N), name="A", dtype=dtype)
    C = te.compute((M, N), lambda i, j: 1 / (1 + tvm.tir.exp(-A[i, j])), name="C")
    return te.create_prim_func([A, C])


def test_sigmoid_structure():
    func = sigmoid(4, 5)
    assert func.attrs["global_symbol"] == "main"
    assert func.attrs["tir.noalias"]
    assert [str(p.name) for p in func.params] == ["var_A", "var_C"]
    A, C = (func.buffer_map[p] for p in func.params)
    assert (A.name, C.name) == ("A", "C")
    root = func.body.block
    assert root.name_hint == "root" and not root.alloc_buffers
    outer = root.body
    inner = outer.body
    assert [str(loop.loop_var.name) for loop in (outer, inner)] == ["i", "j"]
    assert [int(loop.extent) for loop in (outer, inner)] == [4, 5]
    realize = inner.body
    assert realize.iter_values[0].same_as(outer.loop_var)
    assert realize.iter_values[1].same_as(inner.loop_var)
    block = realize.block
    assert block.name_hint == "C" and kinds(block) == "SS" and names(block) == ["v_i", "v_j"]
    v_i, v_j = (iv.var for iv in block.iter_vars)
    expected = tir.Block(
        block.iter_vars,
        [tir.BufferRegion(A, [tvm.ir.Range.from_min_extent(v, 1) for v in (v_i, v_j)])],
        [tir.BufferRegion(C, [tvm.ir.Range.from_min_extent(v, 1) for v in (v_i, v_j)])],
        "C",
        tir.BufferStore(C, 1 / (1 + tir.exp(-A[v_i, v_j])), [v_i, v_j]),
    )
    assert tvm.ir.structural_equal(block, expected, map_free_vars=True)


def test_sigmoid_values():
    a = random(4, 5)
    out = run(sigmoid(4, 5), a, outputs=[((4, 5), "float32")])
    np.testing.assert_allclose(out, 1 / (1 + np.exp(-a)), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "uint8"])
def test_matmul(dtype):
    A = te.placeholder((3, 4), dtype, "A")
    B = te.placeholder((4, 2), dtype, "B")
    k = te.reduce_axis((0, 4), name="k")
    C = te.compute((3, 2), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    assert list(C.op.reduce_axis) == [k] and C.dtype == dtype
    func = te.create_prim_func([A, B, C])
    (block,) = blocks(func)
    assert kinds(block) == "SSR" and names(block) == ["v_i", "v_j", "v_k"]
    assert [r.buffer.name for r in block.reads] == ["A", "B"]
    assert [r.buffer.name for r in block.writes] == ["C"]
    assert float(block.init.value.value) == 0 and block.init.value.dtype == dtype
    a = (random(3, 4) * 4).astype(dtype)
    b = (random(4, 2) * 4).astype(dtype)
    out = run(func, a, b, outputs=[((3, 2), dtype)])
    np.testing.assert_allclose(out, a @ b, rtol=1e-2 if dtype == "float16" else 1e-6)


def test_intermediate_is_allocated_in_the_root():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    C = te.compute((4,), lambda i: B[i] * 2, name="C")
    func = te.create_prim_func([A, C])
    assert [b.name for b in func.body.block.alloc_buffers] == ["B"]
    assert [b.name_hint for b in blocks(func)] == ["B", "C"]
    a = random(4)
    np.testing.assert_allclose(run(func, a, outputs=[((4,), "float32")]), (a + 1) * 2, rtol=1e-6)


def test_intermediate_may_be_an_argument():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    C = te.compute((4,), lambda i: B[i] * 2, name="C")
    func = te.create_prim_func([C, A, B])
    assert not func.body.block.alloc_buffers
    a, b, c = random(4), np.zeros(4, "float32"), np.zeros(4, "float32")
    interpret(func)(c, a, b)
    np.testing.assert_allclose(b, a + 1)
    np.testing.assert_allclose(c, (a + 1) * 2)


def test_block_names_are_unique():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    C = te.compute((4,), lambda i: B[i] + 1, name="B")
    func = te.create_prim_func([A, te.compute((4,), lambda i: C[i] + 1, name="B")])
    assert [b.name_hint for b in blocks(func)] == ["B", "B_1", "B_2"]


def test_shared_producer_is_computed_once():
    A = te.placeholder((4,), name="A")
    x = A
    for _ in range(40):  # as a tree this would have 2^40 nodes
        x = te.compute((4,), lambda i, x=x: x[i] + x[i], name="x")
    assert len(blocks(te.create_prim_func([A, x]))) == 40


def test_long_chain():
    A = te.placeholder((2,), name="A")
    x = A
    for _ in range(3000):
        x = te.compute((2,), lambda i, x=x: x[i] + 1, name="x")
    assert len(blocks(te.create_prim_func([A, x]))) == 3000


def test_scalar_output():
    A = te.placeholder((4,), name="A")
    k = te.reduce_axis((0, 4), name="k")
    total = te.compute((), lambda: te.sum(A[k], axis=k), name="total")
    twice = te.compute((), lambda: total() * 2, name="twice")
    func = te.create_prim_func([A, twice])
    assert [kinds(b) for b in blocks(func)] == ["R", "S"]
    a = random(4)
    np.testing.assert_allclose(run(func, a, outputs=[((), "float32")]), a.sum() * 2, rtol=1e-6)


def test_argmax_is_one_block():
    def combine(x, y):
        better = tir.any(x[1] > y[1], tir.all(x[1] == y[1], x[0] < y[0]))
        return tir.Select(better, x[0], y[0]), tir.Select(better, x[1], y[1])

    argmax = te.comm_reducer(
        combine, lambda t0, t1: (tir.const(-1, t0), te.min_value(t1)), name="argmax"
    )
    idx = te.placeholder((3, 8), "int32", "idx")
    val = te.placeholder((3, 8), "float32", "val")
    k = te.reduce_axis((0, 8), name="k")
    best, value = te.compute((3,), lambda i: argmax((idx[i, k], val[i, k]), axis=k), name="best")
    assert best.op.same_as(value.op) and (best.value_index, value.value_index) == (0, 1)
    func = te.create_prim_func([idx, val, best, value])
    (block,) = blocks(func)
    assert kinds(block) == "SR" and len(block.writes) == 2
    assert [r.buffer.name for r in block.writes] == ["best.v0", "best.v1"]
    v = random(3, 8)
    i = np.tile(np.arange(8, dtype="int32"), (3, 1))
    where, what = run(func, i, v, outputs=[((3,), "int32"), ((3,), "float32")])
    np.testing.assert_array_equal(where, v.argmax(1))
    np.testing.assert_array_equal(what, v.max(1))


def test_several_outputs_without_reduction():
    A = te.placeholder((4,), name="A")
    plus, minus = te.compute((4,), lambda i: (A[i] + 1, A[i] - 1), name="both")
    assert plus.name == "both.v0"
    func = te.create_prim_func([A, plus, minus])
    assert len(blocks(func)) == 1
    a = random(4)
    up, down = run(func, a, outputs=[((4,), "float32")] * 2)
    np.testing.assert_allclose((up, down), (a + 1, a - 1))


def test_one_of_several_outputs_is_enough():
    A = te.placeholder((4,), name="A")
    plus, minus = te.compute((4,), lambda i: (A[i] + 1, A[i] - 1), name="both")
    func = te.create_prim_func([A, minus])
    assert [b.name for b in func.body.block.alloc_buffers] == ["both.v0"]
    a = random(4)
    np.testing.assert_allclose(run(func, a, outputs=[((4,), "float32")]), a - 1)


@pytest.mark.parametrize(
    "reducer, numpy",
    [(te.sum, np.sum), (te.max, np.max), (te.min, np.min)],
    ids=["sum", "max", "min"],
)
def test_reducers(reducer, numpy):
    A = te.placeholder((3, 4, 5), name="A")
    k, l = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 5), "l")
    B = te.compute((3,), lambda i: reducer(A[i, k, l], axis=[k, l]), name="B")
    a = random(3, 4, 5)
    out = run(te.create_prim_func([A, B]), a, outputs=[((3,), "float32")])
    np.testing.assert_allclose(out, numpy(a, (1, 2)), rtol=1e-5)


def test_reduction_with_condition_start_and_offset():
    A = te.placeholder((3, 8), name="A")
    k = te.reduce_axis((2, 8), name="k")
    B = te.compute((3,), lambda i: te.sum(A[i, k], axis=k, where=k < 6, init=10.0), name="B")
    a = random(3, 8)
    out = run(te.create_prim_func([A, B]), a, outputs=[((3,), "float32")])
    np.testing.assert_allclose(out, a[:, 2:6].sum(1) + 10, rtol=1e-6)


def test_reduce_axis_that_depends_on_an_axis():
    A = te.placeholder((4, 4), name="A")
    B = te.compute(
        (4,),
        lambda i: (lambda k: te.sum(A[i, k], axis=k))(te.reduce_axis((0, i + 1), "k")),
        name="B",
    )
    a = random(4, 4)
    out = run(te.create_prim_func([A, B]), a, outputs=[((4,), "float32")])
    np.testing.assert_allclose(out, np.tril(a).sum(1), rtol=1e-6)


def test_convolution_reads_the_window():
    A = te.placeholder((10,), name="A")
    B = te.compute((8,), lambda i: A[i] + A[i + 1] + A[i + 2], name="B")
    func = te.create_prim_func([A, B])
    (block,) = blocks(func)
    (read,) = block.reads
    assert int(read.region[0].extent) == 3
    assert read.region[0].min.same_as(block.iter_vars[0].var)
    a = random(10)
    out = run(func, a, outputs=[((8,), "float32")])
    np.testing.assert_allclose(out, a[:-2] + a[1:-1] + a[2:], rtol=1e-6)


def test_padding_and_gather():
    A = te.placeholder((6,), name="A")
    I = te.placeholder((4,), "int32", "I")
    P = te.compute((8,), lambda i: te.if_then_else(te.all(i >= 1, i < 7), A[i - 1], 0.0), name="P")
    G = te.compute((4,), lambda i: P[I[i]], name="G")
    a, i = random(6), np.array([0, 7, 3, 1], "int32")
    out = run(te.create_prim_func([A, I, G]), a, i, outputs=[((4,), "float32")])
    np.testing.assert_allclose(out, np.pad(a, 1)[i])


def test_dynamic_shape():
    n, m = te.size_var("n"), te.size_var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((n * 2,), lambda i: B[i // 2], name="C")
    func = te.create_prim_func([A, C])
    assert func.buffer_map[func.params[0]].shape[0].same_as(n)
    a = random(3, 5)
    out = run(func, a, outputs=[((6,), "float32")])
    np.testing.assert_allclose(out, a.sum(1).repeat(2), rtol=1e-6)


def test_scalar_argument():
    n, s = te.size_var("n"), te.var("s", "float32")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * s + tir.Cast("float32", n), name="B")
    func = te.create_prim_func([s, A, B])
    assert func.params[0].same_as(s)
    a, b = random(4), np.zeros(4, "float32")
    interpret(func)(2.5, a, b)
    np.testing.assert_allclose(b, a * np.float32(2.5) + 4, rtol=1e-6)


def index_types(func):
    """The integer types of loops, block iterators, shapes and indices."""
    found = set()
    for node in statements(func.body):
        if isinstance(node, tir.For):
            found.update(e.dtype for e in (node.loop_var, node.extent, node.min))
        if isinstance(node, tir.BufferStore):
            found.update(e.dtype for e in (*node.indices, *node.buffer.shape))
        if isinstance(node, tir.Block):
            found.update(iv.var.dtype for iv in node.iter_vars)
            for r in (*node.reads, *node.writes):
                found.update(e.dtype for box in r.region for e in (box.min, box.extent))
    return set(map(str, found))


def mixed(n):
    A = te.placeholder((n, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, (k + 1) % 4], axis=k), name="B")
    C = te.compute((n, 4), lambda i, j: te.if_then_else(i * 2 < j + 3, B[i], i * 10 + j), name="C")
    return te.create_prim_func, [A, C]


@pytest.mark.parametrize("override", [None, "int32", "int64"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_index_type_is_the_same_everywhere(dtype, override):
    make, args = mixed(te.size_var("n", dtype))
    func = make(args, index_dtype_override=override)
    assert index_types(func) == {override or dtype}
    a = random(5, 4)
    i, j = np.indices((5, 4))
    expected = np.where(i * 2 < j + 3, a.sum(1)[:, None], i * 10 + j)
    out = run(func, a, outputs=[((5, 4), "float32")])
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_constant_shapes_of_int64():
    A = te.placeholder((tir.IntImm("int64", 4), tir.IntImm("int64", 5)), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] + 1, name="B")
    assert index_types(te.create_prim_func([A, B])) == {"int64"}


def test_large_tensors_have_int64_indices():
    A = te.placeholder((65536, 65536), name="A")
    B = te.compute((65536,), lambda i: A[i, i], name="B")
    assert index_types(te.create_prim_func([A, B])) == {"int64"}


def test_value_of_an_axis_keeps_its_type():
    B = te.compute((4,), lambda i: i * 3, name="B")
    func = te.create_prim_func([B], index_dtype_override="int64")
    assert func.buffer_map[func.params[0]].dtype == "int32"
    np.testing.assert_array_equal(run(func, outputs=[((4,), "int32")]), np.arange(4) * 3)


def test_attributes_become_annotations():
    A = te.placeholder((4,), name="A")
    W = te.placeholder((4,), name="W")
    attrs = {"schedule_rule": "mine", "layout_free_placeholders": [W]}
    B = te.compute((4,), lambda i: A[i] * W[i], name="B", attrs=attrs)
    func = te.create_prim_func([A, W, B])
    (block,) = blocks(func)
    assert dict(block.annotations) == {"schedule_rule": "mine"}
    assert list(func.attrs["layout_free_buffers"]) == [1]


def test_let_in_a_body():
    A = te.placeholder((4,), name="A")
    x = te.var("x", "float32")
    B = te.compute((4,), lambda i: tir.Let(x, A[i] + 1, x * x), name="B")
    a = random(4)
    out = run(te.create_prim_func([A, B]), a, outputs=[((4,), "float32")])
    np.testing.assert_allclose(out, (a + 1) ** 2, rtol=1e-6)


def test_round_trip_of_expressions():
    A = te.placeholder((3, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((3,), lambda i: B[i] + 1, name="C")
    loaded = tvm.ir.load_json(tvm.ir.save_json([A, C]))
    again = te.create_prim_func(list(loaded)[1].op.input_tensors[0].op.input_tensors + [loaded[1]])
    assert tvm.ir.structural_equal(again, te.create_prim_func([A, C]))


@pytest.mark.parametrize(
    "reduction, dtype, expected",
    [
        (te.sum, "int64", 0),
        (te.sum, "float32", 0),
        (te.max, "float32", -np.inf),
        (te.min, "float32", np.inf),
        (te.max, "int8", -128),
    ],
)
def test_a_reduction_over_nothing_is_what_it_starts_with(reduction, dtype, expected):
    """Whether the default rules schedule it or nobody does."""
    A = te.placeholder((3, 0, 2), dtype, "A")
    k, r = te.reduce_axis((0, 0), "k"), te.reduce_axis((0, 2), "r")
    B = te.compute((3,), lambda i: reduction(A[i, k, r], axis=[k, r]), "B")
    func = te.create_prim_func([A, B])
    empty, out = np.zeros((3, 0, 2), dtype), np.full(3, 7, dtype)
    interpret(func)(empty, out)
    np.testing.assert_array_equal(out, np.full(3, expected, dtype))
    for default in (True, False):
        with tvm.transform.PassContext(config={"tir.default_schedule": default}):
            compiled = tvm.compile(func, "llvm")
        got = tvm.runtime.tensor(np.full(3, 7, dtype))
        compiled(tvm.runtime.tensor(empty), got)
        np.testing.assert_array_equal(got.numpy(), np.full(3, expected, dtype))


@pytest.mark.parametrize("use", ["value", "index", "condition"])
def test_expressions_that_share_parts_take_the_time_of_the_parts(use):
    """x + x, 200 times, is a tree of 2^200 nodes made of 200."""
    A, I = te.placeholder((4,), "float64", "A"), te.placeholder((4,), "int32", "I")

    def element(i):
        x = A[i] if use == "value" else I[i]
        for _ in range(200):
            x = x + x
        return {
            "value": lambda: x, "index": lambda: A[te.min(te.max(x, 0), 3)],
            "condition": lambda: te.if_then_else(x > 0, A[i], A[0]),
        }[use]()  # fmt: skip

    B = te.compute((4,), element, name="B")
    func = te.create_prim_func([A, I, B])
    store = func.body.block.body.body.block
    assert {r.buffer.name for r in store.reads} == ({"A"} if use == "value" else {"A", "I"})


def test_values_made_of_shared_parts():
    A = te.placeholder((3,), "float64", "A")

    def element(i):
        x = A[i]
        for _ in range(60):
            x = x + x
        return x

    run = tvm.compile(te.create_prim_func([A, te.compute((3,), element, name="B")]))
    a, b = np.array([1.0, -2.0, 0.5]), np.empty(3)
    run(a, b)
    np.testing.assert_array_equal(b, a * 2.0**60)
