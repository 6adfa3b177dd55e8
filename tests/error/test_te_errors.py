# SPDX-License-Identifier: Apache-2.0
"""Mistakes in tensor expressions: the error names the cause, the user's line and what to write."""

import inspect

import numpy as np
import pytest
from tvm import te, tir

A = te.placeholder((4, 5), name="A")
B = te.placeholder((5, 6), name="B")
K = te.reduce_axis((0, 5), name="k")
N = te.var("n")


def compute(f, shape=(4, 5)):
    return te.compute(shape, f, name="C")


def value_if_first(i, j):
    if i == 0:
        return A[i, j]
    return 0.0


def unless_first(i, j):
    if i != 0:
        return A[i, j]
    return 0.0


# What is done, the type of the error, parts of its message.
CASES = {
    "too few parameters": (
        lambda: compute(lambda i: A[i, 0]),
        ValueError,
        ["C: expected a function of 2 indices", "got one of 1", "lambda i, i1: ..."],
    ),
    "too many parameters": (
        lambda: compute(lambda i, j, k: A[i, j]),
        ValueError,
        ["expected a function of 2 indices", "got one of 3", "lambda i, j: ..."],
    ),
    "no function": (lambda: compute(3), TypeError, ["expected a function of the indices, got int"]),
    "varargs_names": (
        lambda: te.compute((4, 5), lambda *i: A(*i), name="C", varargs_names=["x"]),
        ValueError,
        ["C: expected 2 varargs_names", "got 1"],
    ),
    "too many indices": (
        lambda: compute(lambda i, j: A[i, j, 0]),
        ValueError,
        ["A: expected 2 indices, got 3"],
    ),
    "too few indices": (
        lambda: compute(lambda i, j: A[i] + 1),
        ValueError,
        ["A: expected 2 indices, got 1"],
    ),
    "call with too few indices": (
        lambda: compute(lambda i, j: A(i)),
        ValueError,
        ["A: expected 2 indices, got 1"],
    ),
    "index beyond the shape": (
        lambda: compute(lambda i, j: A[i, 5]),
        IndexError,
        ["A: expected an index below 5 in dimension 1, got 5"],
    ),
    "negative index": (
        lambda: compute(lambda i, j: A[-1, j]),
        IndexError,
        ["A: expected an index from 0 in dimension 0, got -1", "extent - 1"],
    ),
    "float as index": (
        lambda: compute(lambda i, j: A[i, A[i, j]]),
        TypeError,
        ["A: expected an integer as index 1, got float32", '.astype("int32")'],
    ),
    "range as index": (
        lambda: compute(lambda i, j: A[i, 1:3]),
        TypeError,
        ["A: expected an index of one element, got a range", "te.compute"],
    ),
    "shift of a float": (
        lambda: compute(lambda i, j: A[i, j] << 2),
        TypeError,
        ["shift_left: expected integers, got float32"],
    ),
    "number and text": (
        lambda: compute(lambda i, j: A[i, j] + "x"),
        TypeError,
        ["add: expected numbers, got handle"],
    ),
    "scan of other types": (
        lambda: te.scan(
            te.compute((1, 5), lambda t, i: 1, name="init"),
            te.compute((4, 5), lambda t, i: A[t, i], name="update"),
            A,
            name="S",
        ),
        TypeError,
        ["S: expected init of type float32 as the state has, got int32"],
    ),
    "if": (
        lambda: compute(lambda i, j: A[i, j] if i < 3 else 0.0),
        ValueError,
        ["symbolic expression", "tir.if_then_else"],
    ),
    "if ==": (lambda: compute(value_if_first), ValueError, ["symbolic", "tir.if_then_else"]),
    "if !=": (lambda: compute(unless_first), ValueError, ["symbolic", "tir.if_then_else"]),
    "and": (
        lambda: compute(lambda i, j: A[i, j] > 0 and A[i, j] < 1),
        ValueError,
        ["symbolic", "tir.all(...)"],
    ),
    "or": (
        lambda: compute(lambda i, j: A[i, j] > 0 or A[i, j] < 1),
        ValueError,
        ["symbolic", "tir.any(...)"],
    ),
    "not": (
        lambda: compute(lambda i, j: not A[i, j] > 0),
        ValueError,
        ["symbolic", "tir.Not(...)"],
    ),
    "chained comparison": (
        lambda: compute(lambda i, j: te.if_then_else(1 <= i < 3, A[i, j], 0.0)),
        ValueError,
        ["symbolic", "tir.all(...)"],
    ),
    "exp of an array": (
        lambda: compute(lambda i, j: tir.exp(np.ones(3, "float32"))),
        TypeError,
        ["tir.exp: parameter 'x': expected ir.PrimExpr", "te.placeholder", "numpy"],
    ),
    "None": (
        lambda: compute(lambda i, j: None),
        TypeError,
        ["C: expected the value of one element, got None", "return"],
    ),
    "array as value": (
        lambda: compute(lambda i, j: np.ones((4, 5), "float32")),
        TypeError,
        ["C: expected an expression as the value of one element, got ndarray", "te.placeholder"],
    ),
    "tensor as value": (
        lambda: compute(lambda i, j: A),
        TypeError,
        ["C: expected the value of one element, got the tensor A", "write A[i, j]"],
    ),
    "reduction axis outside": (
        lambda: compute(lambda i, j: A[i, K]),
        ValueError,
        ["C: expected the reduction axis k inside a reduction", "te.sum(..., axis=k)"],
    ),
    "reduction axis in arithmetic": (
        lambda: compute(lambda i, j: A[i, j] * (K + 1)),
        ValueError,
        ["C: expected the reduction axis k inside a reduction"],
    ),
    "reduction inside an expression": (
        lambda: compute(lambda i, j: te.sum(A[i, K], axis=K) + 1),
        ValueError,
        ["C: expected a reduction to be the whole value of an element", "te.compute of its own"],
    ),
    "different reductions": (
        lambda: compute(lambda i, j: (te.sum(A[i, K], axis=K), te.max(A[i, K], axis=K))),
        ValueError,
        ["C: expected all outputs to be the values of one reduction"],
    ),
    "reduction over a variable": (
        lambda: compute(lambda i, j: te.sum(A[i, j], axis=[N])),
        TypeError,
        ["sum: expected axes made by te.reduce_axis, got Var"],
    ),
    "no output": (
        lambda: compute(lambda i, j: ()),
        ValueError,
        ["C: expected at least one output"],
    ),
    "float in a shape": (
        lambda: te.placeholder((4, 2.5), name="X"),
        TypeError,
        ["X: expected integers or expressions as shape, got float 2.5 in dimension 1"],
    ),
    "float in the shape of compute": (
        lambda: compute(lambda i: i, shape=(2.5,)),
        TypeError,
        ["C: expected integers or expressions as shape, got float 2.5 in dimension 0"],
    ),
    "float expression in a shape": (
        lambda: te.placeholder((tir.const(2.0),), name="X"),
        TypeError,
        ["X: expected integers as shape, got float32"],
    ),
    "negative shape": (
        lambda: te.placeholder((4, -1), name="X"),
        ValueError,
        ["X: expected a shape that is not negative, got -1"],
    ),
    "text in a shape": (
        lambda: te.placeholder(("n", 3), name="X"),
        TypeError,
        ["X: expected integers or expressions as shape, got str 'n' in dimension 0"],
    ),
    "text as a shape": (
        lambda: te.placeholder("float32", name="X"),
        TypeError,
        ["X: expected a shape such as (n, m), got 'float32'"],
    ),
    "bool in a shape": (lambda: te.placeholder((True,), name="X"), TypeError, ["got bool True"]),
    "no shape": (
        lambda: te.placeholder(),
        TypeError,
        ["missing 1 required positional argument: 'shape'"],
    ),
    "shape of None": (
        lambda: te.placeholder(None, name="X"),
        TypeError,
        ["X: expected a shape such as (n, m), got None"],
    ),
    "unknown type": (lambda: te.placeholder((4,), "flot32"), ValueError, ["flot32"]),
    "shapes that do not broadcast": (
        lambda: A + B,
        ValueError,
        ["T_add: expected shapes that broadcast, got A (4, 5) and B (5, 6)"],
    ),
    "missing placeholder": (
        lambda: te.create_prim_func([A, compute(lambda i, j: A[i, j] + B[0, 0])]),
        ValueError,
        ["create_prim_func: expected the placeholder B among the arguments"],
    ),
    "tensor twice": (
        lambda: te.create_prim_func([A, A]),
        ValueError,
        ["create_prim_func: expected every tensor once, got A twice"],
    ),
    "no tensor": (
        lambda: te.create_prim_func([A, 3]),
        TypeError,
        ["create_prim_func: expected tensors and variables, got int as number 1"],
    ),
    "array as argument": (
        lambda: te.create_prim_func([np.ones(3)]),
        TypeError,
        ["create_prim_func: expected tensors and variables, got ndarray as number 0"],
    ),
    "scalar that is no argument": (
        lambda: te.create_prim_func([A, compute(lambda i, j: A[i, j] + N)]),
        ValueError,
        ["create_prim_func: expected the variables of C", "got n", "list of arguments"],
    ),
    "float as index type": (
        lambda: te.create_prim_func([A], index_dtype_override="float32"),
        TypeError,
        ["expected index_dtype_override to be int32 or int64, got float32"],
    ),
    "extern without a statement": (
        lambda: te.extern((4,), [A], lambda ins, outs: None, name="E"),
        TypeError,
        ["E: expected the function to give a statement or a call, got NoneType"],
    ),
    "extern of other inputs": (
        lambda: te.extern((4,), [np.ones(3)], lambda ins, outs: None, name="E"),
        TypeError,
        ["E: expected tensors as inputs, got ndarray as number 0"],
    ),
    "extern without a type": (
        lambda: te.extern((4,), [], lambda ins, outs: None, name="E"),
        ValueError,
        ["E: expected dtype"],
    ),
    "scan without a state": (
        lambda: te.scan([], [], [], name="S"),
        ValueError,
        ["S: expected at least one"],
    ),
    "tag in a tag scope": (
        lambda: te.tag_scope("a")(lambda: te.compute((4,), lambda i: i, tag="b"))(),
        ValueError,
        ["expected no tag inside tag_scope('a'), got 'b'"],
    ),
    "no such output": (
        lambda: A.op.output(1),
        IndexError,
        ["A: expected the number of an output below 1, got 1"],
    ),
    "thread without a tag": (
        lambda: te.thread_axis((0, 4)),
        ValueError,
        ["thread_axis: expected a tag"],
    ),
}
# Made by methods whose traceback is all there is: they run outside of te's functions.
WITHOUT_PLACE = {"no such output"}


@pytest.mark.parametrize("name", CASES)
def test_error(name):
    make, kind, parts = CASES[name]
    with pytest.raises(kind) as caught:
        make()
    message = str(caught.value)
    assert type(caught.value) is kind
    for part in parts:
        assert part in message
    if name not in WITHOUT_PLACE:
        assert f"\n  at {__file__}:" in message
        assert message.count("\n  at ") == 1


def line_of(message):
    return int(message.rsplit(f"{__file__}:", 1)[1].split(":")[0])


def test_place_is_the_line_inside_the_function():
    def body(i, j):
        x = A[i, j]
        return x + A[i, 9]

    with pytest.raises(IndexError) as caught:
        te.compute((4, 5), body)
    assert line_of(str(caught.value)) == inspect.getsourcelines(body)[1] + 2
    assert str(caught.value).endswith(": return x + A[i, 9]")


def test_place_of_a_wrong_function_is_where_it_was_written():
    def body(i):
        return A[i, 0]

    with pytest.raises(ValueError) as caught:
        te.compute((4, 5), body)
    assert line_of(str(caught.value)) == inspect.getsourcelines(body)[1]


def test_errors_of_the_user_pass():
    with pytest.raises(ZeroDivisionError, match="division or modulo by zero"):
        te.compute((4,), lambda i: 1 // 0)


def test_scan_reads_another_moment_of_a_stage():
    state = te.placeholder((4, 5), name="state")
    init = te.compute((1, 5), lambda t, i: 0.0, name="init")
    stage = te.compute((4, 5), lambda t, i: state[t - 1, i] + 1, name="stage")
    update = te.compute((4, 5), lambda t, i: stage[t - 1, i], name="update")
    with pytest.raises(ValueError, match=r"update: expected stage, .* to be read at \[t, ...\]"):
        te.create_prim_func([te.scan(init, update, state)])


def test_axis_of_another_operation():
    row = te.compute((4,), lambda i: te.sum(A[i, K], axis=K), name="row")
    wrong = te.compute((4,), lambda i, k=K: row[i] + A[i, k], name="wrong")
    with pytest.raises(ValueError, match="the variables of wrong .* got k; an axis of te.reduce_"):
        te.create_prim_func([A, wrong])


def test_specialize_names_what_does_not_fit():
    func = te.create_prim_func([A, compute(lambda i, j: A[i, j])])
    wrong = tir.decl_buffer((4, 6))
    with pytest.raises(ValueError, match="specialize: expected the dimension 5 for A, got 6"):
        func.specialize({func.params[0]: wrong})
    with pytest.raises(TypeError, match="expected a buffer for var_A, got a value"):
        func.specialize({func.params[0]: 3})


def test_the_process_goes_on():
    with pytest.raises(ValueError):
        compute(lambda i: A[i, 0])
    assert compute(lambda i, j: A[i, j]).op.body[0].indices[0].dtype == "int32"
