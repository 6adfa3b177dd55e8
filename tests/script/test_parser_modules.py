# SPDX-License-Identifier: Apache-2.0
"""The parts of the parser that users extend: trees, visitors, operators, what functions see."""

import ast
import inspect

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.script.parser.core import dispatch, doc, doc_core, parser, utils


def test_trees_are_pythons():
    tree = doc.parse("for i in range(4):\n    pass")
    assert isinstance(tree.body[0], doc.For) and doc.For is ast.For is doc_core.For
    assert doc.to_doc(tree) is tree and doc.from_doc(tree) is tree
    names = {n.id for n in ast.walk(tree) if isinstance(n, doc.Name)}
    assert names == {"i", "range"}
    with pytest.raises(AttributeError, match="no attribute 'Statement'"):
        _ = doc.Statement
    with pytest.raises(NotImplementedError, match="expected no conversion of For"):
        doc.register_to_doc("For")


@pytest.fixture
def language():
    """A language with one statement, which counts the assignments of a function."""
    before = dict(parser._VISITORS)

    def counted(function):
        return function

    counted.dispatch_token = "counted"
    found = {}

    @dispatch.register("counted", "FunctionDef")
    def visit_function(self, node):
        assert self.get_dispatch_token(node) == "counted"
        with self.with_dispatch_token("counted"), self.scope():
            self.visit_body(node.body)
        self.builder.result = tvm.IRModule({})

    @dispatch.register("counted", "Assign")
    def visit_assign(self, node):
        value = self.eval_expr(node.value, {"ten": 10})
        if value is None:
            self.report_error(node, "expected a value")
        found.update(self.eval_assign(node.targets[0], value, lambda self, node, name, v: v))

    yield counted, found
    parser._VISITORS.clear()
    parser._VISITORS.update(before)


def test_a_language_of_ones_own(language):
    counted, found = language
    text = "@counted\ndef f():\n    a = ten + 1\n    b, c = a, 'x'\n"
    tvm.script.from_source(text, {"counted": counted})
    assert found == {"a": 11, "b": 11, "c": "x"}
    assert dispatch.get("counted", "Assign") is not None
    assert dispatch.get("counted", "While") is None and dispatch.get("counted", "If", 3) == 3
    with pytest.raises(tvm.error.DiagnosticError, match="(?s)expected a value.*a = None"):
        tvm.script.from_source("@counted\ndef f():\n    a = None\n", {"counted": counted})
    with pytest.raises(tvm.error.DiagnosticError, match="expected a new name, got 'a' again"):
        tvm.script.from_source("@counted\ndef f():\n    a = 1\n    a = 2\n", {"counted": counted})


def test_only_statements_have_visitors():
    with pytest.raises(ValueError, match="expected a statement of Python's ast.*got 'Loop'"):
        dispatch.register("tir", "Loop")(None)
    with pytest.raises(ValueError, match="got 'BinOp'"):
        dispatch.get("tir", "BinOp")


class Length:
    def __init__(self, value):
        self.value = value


@pytest.fixture
def operators():
    from tvm.script.parser.core.evaluator import OPERATORS

    yield OPERATORS
    OPERATORS.clear()


def test_operators_of_other_values(operators):
    dispatch.register_op(Length, doc.Add, 0)(lambda a, b: Length(a.value + b))
    dispatch.register_op(Length, doc.Add, 1)(lambda a, b: Length(a + b.value))
    dispatch.register_op(Length, doc.Lt, 0)(lambda a, b: a.value < b.value)
    dispatch.register_op(Length, doc.USub, 0)(lambda a: a.value)
    assert dispatch.get_op(Length, doc.Add, 0) is not None
    assert dispatch.get_op(Length, doc.Mult, 0, "none") == "none"
    short, long = Length(2), Length(5)

    @T.prim_func
    def func(A: T.Buffer((8,), "int32")):
        if short < long:
            A[0] = -(1 + short + 4)

    tvm.ir.assert_structural_equal(func.body.value, tir.const(7, "int32"))


def test_what_functions_see():
    size = 4

    def inner():
        return size, pytest

    assert utils.get_func_nonlocals(inner) == {"size": 4}
    names = utils.inspect_function_capture(inner)
    assert names["size"] == 4 and names["pytest"] is pytest

    class Holder:
        def method(self):
            return size

        inside = None

    assert utils.inspect_class_capture(Holder)["size"] == 4
    seen = []

    def note(function):
        seen.append(utils.is_defined_in_class(inspect.stack(), function))
        return function

    class Other:
        @note
        def method(self):
            pass

    @note
    def outside():
        pass

    assert seen == [True, False]
