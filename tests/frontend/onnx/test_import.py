# SPDX-License-Identifier: Apache-2.0
"""Graphs: names, shapes, weights as parameters, functions, subgraphs, errors."""

import pathlib

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper
from tvm import relax
from tvm.relax.frontend import detach_params
from tvm.relax.frontend.onnx import from_onnx
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

from . import operators
from .models import INT64, linear, model, node, value


def test_linear():
    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor(("batch", 4), "float32"),
            w: R.Tensor((4, 3), "float32"),
            b: R.Tensor((3,), "float32"),
        ):
            batch = T.int64(is_size_var=True)  # noqa: F841
            R.func_attr({"num_input": 1})
            with R.dataflow():
                lv = R.matmul(x, w)
                lv1 = R.add(lv, b)
                lv2 = R.nn.relu(lv1)
                gv = lv2
                R.output(gv)
            return gv

    proto = linear()
    mod, params = detach_params(from_onnx(proto, keep_params_in_input=True))
    tvm.ir.assert_structural_equal(mod, Expected)
    for tensor, proto_tensor in zip(params["main"], proto.graph.initializer, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), onnx.numpy_helper.to_array(proto_tensor))
    assert relax.analysis.well_formed(mod)


def params_of(mod):
    return [(p.name_hint, p.struct_info) for p in mod["main"].params]


def test_weights_are_constants_by_default():
    mod = from_onnx(linear())
    assert [name for name, _ in params_of(mod)] == ["x"]
    assert mod["main"].attrs["num_input"] == 1


def test_shape_dict_and_dtype_dict():
    n = tvm.tir.SizeVar("n", "int64")
    for shape, expected in (([2, 4], "(2, 4)"), ([n, 4], "(n, 4)"), (["m", 4], "(m, 4)")):
        mod = from_onnx(linear(), shape_dict={"x": shape})
        assert expected in str(params_of(mod)[0][1])
    identity = model([node("Identity", "x", "y")], [value("x", (2,))], [value("y", (2,))])
    mod = from_onnx(identity, dtype_dict={"x": "float16"})
    assert params_of(mod)[0][1].dtype == "float16"
    with pytest.raises(TypeError, match="shape of 'x': expected numbers, expressions or names"):
        from_onnx(linear(), shape_dict={"x": [None, 4]})


def test_names_are_cleaned():
    proto = model(
        [node("Add", "a.b 1", "s"), node("Add", "s a_b", "y")],
        [value("a.b", (2,)), value("1", (2,)), value("a_b", (2,))],
        [value("y", (2,))],
    )
    with pytest.warns(UserWarning, match="renamed input 'a.b' to 'a_b'"):
        mod = from_onnx(proto)
    assert [name for name, _ in params_of(mod)] == ["a_b", "input_1", "a_b_1"]
    mod = from_onnx(proto, sanitize_input_names=False)
    assert [name for name, _ in params_of(mod)] == ["a.b", "1", "a_b"]


def test_symbolic_dimensions():
    proto = model(
        [node("Concat", "x z", "y", axis=0)],
        [value("z", ("2*n + 1", "n//2")), value("x", ("n", "n//2"))],
        [value("y", None)],
    )
    mod = from_onnx(proto)
    (z, x), result = [info for _, info in params_of(mod)], mod["main"].ret_struct_info
    (n, _), (longer, half) = x.shape.values, z.shape.values
    assert n.name == "n"
    equal = tvm.arith.Analyzer().can_prove_equal
    assert equal(longer, n * 2 + 1)
    assert equal(half, n // 2)
    assert equal(result.shape.values[0], n * 3 + 1)


def test_dimension_0_is_a_number():
    proto = model([node("Relu", "x", "y")], [value("x", (0, 3))], [value("y", (0, 3))])
    assert list(params_of(from_onnx(proto))[0][1].shape.values) == [0, 3]


def test_unknown_rank_needs_a_shape():
    proto = model([node("Relu", "x", "y")], [value("x", None)], [value("y", None)])
    with pytest.raises(ValueError, match="give its shape in shape_dict"):
        from_onnx(proto)
    assert from_onnx(proto, shape_dict={"x": [2, 3]})["main"].ret_struct_info.ndim == 2


def test_several_outputs_are_a_tuple():
    nodes = [node("Relu", "x", "y"), node("Neg", "x", "z")]
    proto = model(nodes, [value("x", (2,))], [value("y", (2,)), value("z", (2,))])
    info = from_onnx(proto)["main"].ret_struct_info
    assert isinstance(info, relax.TupleStructInfo)
    assert len(info.fields) == 2


def bindings(mod):
    """Names of the operators (or PrimFuncs) of main, in order."""
    names = []
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            if isinstance(call, relax.Call):
                name = call.op.name
                names.append(call.args[0].name_hint if name == "relax.call_tir" else name[6:])
    return names


def test_shape_arithmetic_disappears():
    """What exporters write for x.view(x.shape[0], -1) and x.flatten(2)."""
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Unsqueeze", "n axis", "n1"),
        node("Concat", "n1 minus", "to", axis=0),
        node("Reshape", "x to", "y"),
        node("Slice", "s zero1 two", "front"),
        node("ReduceProd", "front", "count"),
        node("Cast", "count", "f", to=TensorProto.FLOAT),
        node("Cast", "f", "i", to=INT64),
        node("Reshape", "i one", "i1"),
        node("Concat", "i1 minus", "to2", axis=0),
        node("Reshape", "x to2", "z"),
    ]
    weights = {
        "zero": np.array(0),
        "axis": np.array([0]),
        "minus": np.array([-1]),
        "zero1": np.array([0]),
        "two": np.array([2]),
        "one": np.array([1]),
    }
    x, y, z = value("x", ("n", 3, 4)), value("y", None), value("z", None)
    for keep in (False, True):
        mod = from_onnx(model(nodes, [x], [y, z], weights), keep_params_in_input=keep)
        assert bindings(mod) == ["reshape", "reshape"]
        assert str(mod["main"].ret_struct_info.fields[0].shape.values[1]) == "T.int64(12)"


def test_kept_weights_are_not_computed_with():
    """Their values may be replaced; sizes (of a Resize) are part of the program."""
    nodes = [node("Add", "a b", "s"), node("Mul", "x s", "t"), node("Resize", "t none up", "y")]
    one = np.ones((), "float32")
    weights = {"a": one, "b": one, "none": np.ones(0, "float32"), "up": np.float32([1, 2])}
    proto = model(nodes, [value("x", ("n", 3))], [value("y", None)], weights)
    assert bindings(from_onnx(proto)) == ["multiply", "resize"]
    mod = from_onnx(proto, keep_params_in_input=True)
    assert bindings(mod) == ["add", "multiply", "resize"]
    assert str(mod["main"].ret_struct_info.shape.values[1]) == "T.int64(6)"


def test_initializers_that_are_inputs_are_defaults():
    proto = linear()
    proto.graph.input.append(value("w", (4, 3)))
    assert [name for name, _ in params_of(from_onnx(proto))] == ["x"]


def test_functions_are_inlined():
    body = [
        helper.make_node("LeakyRelu", ["a"], ["t"]),
        node("Add", "t b", "c"),
    ]
    reference = onnx.AttributeProto(
        name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT
    )
    body[0].attribute.append(reference)
    function = helper.make_function(
        "mine", "f", ["a", "b"], ["c"], body, [helper.make_opsetid("", 21)], ["slope"]
    )
    calls = [
        node("f", "x x", "t", domain="mine", slope=0.25),
        node("f", "t x", "y", domain="mine", slope=0.5),
    ]
    proto = model(
        calls,
        [value("x", (2,))],
        [value("y", (2,))],
        functions=[function],
        opsets=[helper.make_opsetid("mine", 1)],
    )
    mod = from_onnx(proto)
    assert bindings(mod) == ["nn.leakyrelu", "add"] * 2
    alphas = [b.value.attrs.alpha for b in mod["main"].body.blocks[0].bindings[:4:2]]
    assert alphas == [0.25, 0.5]


def test_functions_that_call_themselves_raise():
    function = helper.make_function(
        "mine",
        "f",
        ["a"],
        ["b"],
        [node("f", "a", "b", domain="mine")],
        [helper.make_opsetid("mine", 1)],
    )
    proto = model(
        [node("f", "x", "y", domain="mine")],
        [value("x", (2,))],
        [value("y", (2,))],
        functions=[function],
        opsets=[helper.make_opsetid("mine", 1)],
    )
    with pytest.raises(RecursionError, match="functions nested at most"):
        from_onnx(proto)


def branch(op):
    return helper.make_graph([node(op, "x", "r")], op, [], [value("r", (2,))])


def test_a_branch_that_is_known_is_taken():
    nodes = [node("If", "c", "y", then_branch=branch("Relu"), else_branch=branch("Neg"))]
    for truth, name in ((True, "nn.relu"), (False, "negative")):
        proto = model(nodes, [value("x", (2,))], [value("y", (2,))], {"c": np.array(truth)})
        assert bindings(from_onnx(proto)) == [name]


def test_branches():
    nodes = [node("If", "c", "y", then_branch=branch("Relu"), else_branch=branch("Neg"))]
    inputs = [value("c", (), TensorProto.BOOL), value("x", (2,))]
    mod = from_onnx(model(nodes, inputs, [value("y", (2,))]))
    assert relax.analysis.well_formed(mod)
    values = [b.value for block in mod["main"].body.blocks for b in block.bindings]
    assert sum(isinstance(v, relax.If) for v in values) == 1


# ---- errors -------------------------------------------------------------------------------------
def import_one(op, inputs="x", outputs="y", opset=21, **attributes):
    proto = model(
        [node(op, inputs, outputs, **attributes)],
        [value("x", (2, 3))],
        [value("y", None)],
        opset=opset,
    )
    return from_onnx(proto)


def test_unsupported_operators_come_in_one_error():
    nodes = [node("Foo", "x", "a"), node("Relux", "a", "b"), node("Foo", "b", "y", domain="my")]
    proto = model(nodes, [value("x", (2,))], [value("y", (2,))])
    with pytest.raises(tvm.error.OpNotImplemented) as error:
        from_onnx(proto)
    text = str(error.value)
    assert "Foo (1 node" in text and "my.Foo (1 node" in text
    assert "Relux (1 node, did you mean 'Relu'?)" in text


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (tvm.error.OpNotImplemented, "attribute 'beta' is not known", dict(op="Relu", beta=1)),
        (
            ValueError,
            r"attribute 'axis' to be an integer, got a text",
            dict(op="Softmax", axis="1"),
        ),
        (ValueError, "axis in \\[-2, 2\\), got 5", dict(op="Softmax", axis=5)),
        (ValueError, "inputs that earlier nodes gave, got 'z'", dict(op="Relu", inputs="z")),
        (ValueError, "an attribute 'axis', an integer, got none", dict(op="Concat")),
        (ValueError, "at least 2 inputs, got 1", dict(op="Add")),
        (tvm.error.OpNotImplemented, "input number 1", dict(op="Relu", inputs="x x")),
    ],
)
def test_errors_name_node_and_cause(error, text, call):
    with pytest.raises((error, NotImplementedError), match=text) as caught:
        import_one(**call)
    assert f"({call['op']})" in str(caught.value)


def test_names_are_given_once():
    nodes = [node("Relu", "x", "y"), node("Neg", "x", "y")]
    with pytest.raises(ValueError, match="a new name of its output, got 'y' again"):
        from_onnx(model(nodes, [value("x", (2,))], [value("y", (2,))]))
    with pytest.raises(ValueError, match="a value for the output 'q', got none"):
        from_onnx(model(nodes[:1], [value("x", (2,))], [value("q", (2,))]))


def test_tables_of_operators_are_current():
    page = (pathlib.Path(__file__).parents[3] / "docs/import.md").read_text()
    marks = f"<!-- {operators.SECTION} -->\n", f"\n<!-- end of {operators.SECTION} -->"
    written = page.partition(marks[0])[2].partition(marks[1])[0]
    assert written.splitlines() == operators.lines()
