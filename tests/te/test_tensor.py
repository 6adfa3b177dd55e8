# SPDX-License-Identifier: Apache-2.0
"""Tensors, operations and how they are built."""

import numpy as np
import pytest
import tvm
from tvm import te, tir
from tvm.tir import interpret


def evaluate(output, *inputs):
    """The values of a tensor, given (placeholder, array) pairs."""
    func = te.create_prim_func([t for t, _ in inputs] + [output])
    shape = [int(e) for e in output.shape]
    result = np.zeros(shape, str(output.dtype))
    interpret(func)(*(a for _, a in inputs), result)
    return result


def test_placeholder():
    n = te.var("n")
    A = te.placeholder((n, 4), name="A")
    assert isinstance(A, te.Tensor) and isinstance(A.op, te.PlaceholderOp)
    assert (A.ndim, A.name, A.dtype, A.value_index) == (2, "A", "float32", 0)
    assert A.shape[0].same_as(n) and int(A.shape[1]) == 4
    assert A.op.num_outputs == 1 and not A.op.input_tensors


def test_placeholder_of_one_dimension_without_a_tuple():
    assert te.placeholder(4).ndim == 1
    assert te.placeholder(te.var("n")).ndim == 1
    assert te.placeholder(np.int64(4)).ndim == 1
    assert te.placeholder((), "int8").ndim == 0


def test_compute_fields():
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4, 5), lambda x, y: A[x, y] + 1, name="B", tag="injective", attrs={"a": 1})
    op = B.op
    assert isinstance(op, te.ComputeOp) and isinstance(op, te.Operation)
    assert (op.name, op.tag, op.attrs["a"]) == ("B", "injective", 1)
    assert [str(a.var.name) for a in op.axis] == ["x", "y"]
    assert len(op.reduce_axis) == 0 and len(op.body) == 1
    assert list(op.input_tensors) == [A] and op.output(0) == B


def test_tensors_are_the_same_by_operation_and_number():
    A = te.placeholder((4,), name="A")
    B = te.placeholder((4,), name="A")
    assert A == A.op.output(0) and hash(A) == hash(A.op.output(0))
    assert A != B and {A: 1}.get(B) is None and {A: 1}[A.op.output(0)] == 1
    assert not tvm.ir.structural_equal(A[0] + B[0], A[0] + A[0])
    assert tvm.ir.structural_equal(A[0] + A[0], B[0] + B[0])


def test_indexing():
    A = te.placeholder((4, 5), name="A")
    i, j = te.var("i"), te.var("j")
    assert tvm.ir.structural_equal(A[i, j], A(i, j))
    assert tvm.ir.structural_equal(A[i][j], A[i, j])
    row = A[i]
    assert isinstance(row, te.TensorSlice) and row.dtype == "float32"
    one = te.placeholder((4,), name="one")
    assert isinstance(one[i] + 1, tir.PrimExpr)


def test_slices_are_expressions():
    A = te.placeholder((4,), name="A")
    part = te.TensorSlice(A, (te.var("i"),))
    assert isinstance(part * 2 + 1, tir.PrimExpr)
    assert isinstance(tir.exp(part), tir.PrimExpr)


def test_variable_arguments():
    A = te.placeholder((2, 3, 4), name="A")
    B = te.compute(A.shape, lambda *i: A(*i) + 1)
    assert [str(a.var.name) for a in B.op.axis] == ["i0", "i1", "i2"]
    C = te.compute(A.shape, lambda x, *rest: A(x, *rest) + 1)
    assert [str(a.var.name) for a in C.op.axis] == ["x", "rest0", "rest1"]
    D = te.compute(A.shape, lambda *i: A(*i) + 1, varargs_names=["a", "b", "c"])
    assert [str(a.var.name) for a in D.op.axis] == ["a", "b", "c"]


def test_functions_of_all_kinds():
    A = te.placeholder((4,), name="A")

    class Reader:
        def __call__(self, i):
            return A[i]

    def with_default(i, offset=1):
        return A[i] + offset

    assert te.compute((4,), Reader()).ndim == 1
    assert [str(a.var.name) for a in te.compute((4,), with_default).op.axis] == ["i"]


def test_constants_and_slices_as_values():
    A = te.placeholder((4,), name="A")
    assert te.compute((4,), lambda i: 1).dtype == "int32"
    assert te.compute((4,), lambda i: 1.5).dtype == "float32"
    assert te.compute((4,), lambda i: te.TensorSlice(A, (i,))).dtype == "float32"


def test_tag_scope():
    with te.tag_scope("conv"):
        A = te.compute((4,), lambda i: i)
    assert A.op.tag == "conv" and te.compute((4,), lambda i: i).op.tag == ""

    @te.tag_scope("pool")
    def make():
        return te.compute((4,), lambda i: i)

    assert make().op.tag == "pool"


def test_names_of_te():
    import tvm.tir.op

    for name in "any all exp erf tanh sqrt floor max min sum if_then_else add multiply".split():
        assert getattr(te, name) is getattr(tvm.tir, name)
        assert name in dir(te)
    assert te.AXIS_SEPARATOR == "axis_separator"
    x = te.thread_axis((0, 32), "threadIdx.x")
    assert x.thread_tag == "threadIdx.x" and int(x.dom.extent) == 32
    assert te.thread_axis("blockIdx.x").dom is None
    assert te.const(3, "int64").dtype == "int64"
    assert isinstance(te.size_var("n"), tir.SizeVar)


OPERATORS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "less": lambda a, b: a < b,
    "neg": lambda a, b: -a,
    "abs": lambda a, b: abs(a),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize(
    "shapes", [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2,))], ids=str
)
def test_operators_broadcast(name, shapes):
    op = OPERATORS[name]
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(1, 2, s).astype("float32") for s in shapes)
    A, B = te.placeholder(a.shape, name="A"), te.placeholder(b.shape, name="B")
    args = [(A, a)] if name in ("neg", "abs") else [(A, a), (B, b)]
    out = evaluate(op(A, B), *args)
    np.testing.assert_allclose(out, op(a, b), rtol=1e-6)
    assert out.shape == op(a, b).shape


def test_operators_with_scalars():
    A = te.placeholder((3,), name="A")
    a = np.array([1, 2, 4], "float32")
    np.testing.assert_allclose(evaluate(A + 1, (A, a)), a + 1)
    np.testing.assert_allclose(evaluate(1 - A, (A, a)), 1 - a)
    np.testing.assert_allclose(evaluate(8 / A, (A, a)), 8 / a)
    np.testing.assert_array_equal(evaluate(A.astype("int32"), (A, a)), a.astype("int32"))
    assert (A + 1).op.name == "T_add"


def test_operators_on_dynamic_shapes():
    n = te.size_var("n")
    A, B = te.placeholder((n, 3), name="A"), te.placeholder((1, 3), name="B")
    C = A * B
    assert C.shape[0].same_as(n)
    func = te.create_prim_func([A, B, C])
    a, b, c = np.ones((4, 3), "float32"), np.full((1, 3), 2, "float32"), np.zeros((4, 3), "float32")
    interpret(func)(a, b, c)
    np.testing.assert_array_equal(c, a * b)


def test_a_tensor_is_true():
    bias = te.placeholder((4,))
    assert bias and (None or bias) is bias


def test_comparison_inside_compute_of_shapes_is_allowed():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] if A.shape[0] == n else A[0])
    assert isinstance(B.op.body[0].indices[0], tir.Var)
    C = te.compute((n,), lambda i: A[i] if i in [n, i] else A[0])
    assert C.op.body[0].indices[0].same_as(C.op.axis[0].var)
