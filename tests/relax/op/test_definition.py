# SPDX-License-Identifier: Apache-2.0
"""What follows from an operator's definition: function, attributes, leniency; operators defined in
Python."""

import inspect

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import TensorStructInfo, op

n = tvm.tir.Var("n", "int64")
x = relax.Var("x", TensorStructInfo((2, 3), "float32"))
half = relax.Var("h", TensorStructInfo((2, 3), "float16"))


def infer(call):
    return relax.BlockBuilder().normalize(call).struct_info


def equal(a, b):
    tvm.ir.assert_structural_equal(a, b)


def test_functions_have_signatures():
    assert str(inspect.signature(op.add)) == "(x1, x2)"
    assert list(inspect.signature(op.nn.conv2d).parameters) == [
        *("data", "weight", "strides", "padding", "dilation", "groups"),
        *("data_layout", "kernel_layout", "out_layout", "out_dtype"),
    ]
    assert op.nn.softmax.__doc__ == "exp(x) / sum(exp(x)) along the axis."
    assert inspect.signature(op.eye).parameters["m"].default is None


def test_modules_of_the_interface():
    from tvm.relax.op.binary import add
    from tvm.relax.op.nn import conv2d
    from tvm.relax.op.nn.nn import conv2d as same

    assert add is op.add
    assert conv2d is same is op.nn.conv2d
    assert {"add", "nn", "call_tir"} <= set(dir(op))
    assert "conv2d" in dir(op.nn)


def test_attributes():
    attrs = op.nn.conv2d(x, x, padding=1, strides=2).attrs
    assert attrs.__class__.__name__ == "Conv2DAttrs"
    assert list(map(int, attrs.padding)) == [1, 1, 1, 1]
    assert list(map(int, attrs.strides)) == [2, 2]
    assert attrs.padding[0].value == 1
    assert (attrs.data_layout, attrs.out_layout) == ("NCHW", "NCHW")
    assert attrs.out_dtype == "void" or str(attrs.out_dtype) in ("", "void")
    assert op.nn.conv2d(x, x, padding=(1, 2)).attrs.padding[3].value == 2
    assert relax.op.op_attrs.Conv2DAttrs is type(attrs)
    assert op.take(x, x, axis=1).attrs.axis == 1
    assert op.take(x, x).attrs.axis is None


def test_attributes_are_compared_and_saved():
    a, b = op.nn.conv2d(x, x, padding=1), op.nn.conv2d(x, x, padding=[1, 1, 1, 1])
    equal(a, b)
    assert not tvm.ir.structural_equal(a, op.nn.conv2d(x, x))
    attrs = tvm.ir.load_json(tvm.ir.save_json(a.attrs))
    equal(attrs, a.attrs)


def test_numbers_take_the_type_of_their_neighbour():
    assert infer(op.add(half, 1)).dtype == "float16"
    assert infer(op.add(1.5, half)).dtype == "float16"
    assert op.multiply(half, 2).args[1].data.numpy() == np.float16(2)
    assert op.add(relax.Var("i", TensorStructInfo((), "int8")), -1).args[1].data.numpy() == -1


def test_python_values_stand_for_expressions():
    equal(op.reshape(x, [3, 2]), op.reshape(x, relax.ShapeExpr([3, 2])))
    equal(op.reshape(x, (n, 2)).args[1], relax.ShapeExpr([n, 2]))
    equal(op.clip(x, 0, 1.5).args[1], relax.PrimValue(0))
    equal(op.concat((x, x)), op.concat(relax.Tuple([x, x])))
    equal(
        op.strided_slice(x, [0], [n], [3]),
        op.strided_slice(x, (0,), relax.Tuple([relax.PrimValue(n)]), (3,)),
    )
    equal(op.full((2,), 1.0), op.full((2,), relax.const(1.0, "float32")))
    equal(op.sum(x, 1), op.sum(x, [1]))
    equal(op.nn.layer_norm(x, x, x, -1), op.nn.layer_norm(x, x, x, [-1]))
    equal(op.take(x, np.array([0, 1])).args[1], relax.const(np.array([0, 1])))


def test_reshape_completes_the_shape():
    y = relax.Var("y", TensorStructInfo((n, 4, 6), "float32"))
    equal(op.reshape(y, (0, -1)).args[1], relax.ShapeExpr([n, 24]))
    equal(op.reshape(y, (-1, 24)).args[1], relax.ShapeExpr([n, 24]))
    equal(op.reshape(y, (2, -1)).args[1], relax.ShapeExpr([2, n * 12]))


def test_arange_and_eye_defaults():
    equal(op.arange(5), op.arange(0, 5, 1, "int64"))
    equal(op.arange(0, 1.0, 0.5), op.arange(0, 1.0, 0.5, "float32"))
    equal(op.eye(3), op.eye(3, 3, 0, "float32"))


def test_call_tir_takes_one_tensor_or_a_list():
    f = relax.GlobalVar("f")
    info = x.struct_info
    equal(op.call_tir(f, x, info), op.call_tir(f, (x,), out_sinfo=info))
    equal(op.call_tir(f, [x], [info, info]).sinfo_args[0], relax.TupleStructInfo([info, info]))
    equal(op.call_tir(f, (x,), info, tir_vars=[n]).args[2], relax.ShapeExpr([n]))


def test_attention_with_bias_is_attention_bias():
    q = relax.Var("q", TensorStructInfo((1, 2, 3, 4), "float32"))
    assert op.nn.attention(q, q, q).op.name == "relax.nn.attention"
    assert op.nn.attention(q, q, q, q).op.name == "relax.nn.attention_bias"


def test_composites():
    w = relax.Var("w", TensorStructInfo((5, 3), "float32"))
    b = relax.Var("b", TensorStructInfo((5,), "float32"))
    mask = relax.Var("m", TensorStructInfo((2, 3), "bool"))
    equal(infer(op.linear(x, w, b)), TensorStructInfo((2, 5), "float32"))
    equal(infer(op.linear(x, w)), TensorStructInfo((2, 5), "float32"))
    equal(infer(op.masked_fill(x, mask, 0.0)), x.struct_info)
    equal(op.nn.relu6(x), op.clip(x, 0, 6))


def test_layout_transform_takes_a_function():
    call = op.layout_transform(x, lambda i, j: [j, i])
    equal(infer(call), TensorStructInfo((3, 2), "float32"))


def test_known_facts_replace_inspection():
    builder = relax.BlockBuilder()

    def value(call):
        return int(builder.normalize(call).value)

    assert value(op.inspect.tensor_ndim(x)) == 2
    assert value(op.inspect.tensor_shape_i(x, 1)) == 3
    assert value(op.inspect.tensor_dtype_bits(half)) == 16
    y = relax.Var("y", TensorStructInfo((n,), "float32"))
    equal(builder.normalize(op.inspect.tensor_shape_i(y, 0)), relax.PrimValue(n))


def test_operator_of_a_user():
    def infer_scale(call, builder):
        return call.args[0].struct_info

    op.define("test.scale", "x: Tensor, factor=2.0, mode='fast'", infer_scale, "Scales.")
    call = op.test.scale(x, 0.5)
    assert dict(call.attrs) == {"factor": 0.5, "mode": "fast"}
    assert op.test.scale.__doc__ == "Scales."
    equal(infer(call), x.struct_info)
    with pytest.raises(tvm.TVMError, match="test.scale: expected 1 arguments, got 2"):
        infer(relax.Call(tvm.ir.Op.get("test.scale"), [x, x]))
    with pytest.raises(ValueError, match="expected a new name, got 'test.scale'"):
        op.define("test.scale", "x: Tensor", infer_scale)


@pytest.mark.parametrize("schema", ["x: Tensr", "x: Tensor y", "x=", "x='a", "x: Tensor,, y"])
def test_bad_schemas(schema):
    with pytest.raises(ValueError, match="in the schema, got"):
        op.define(f"test.bad_{abs(hash(schema))}", schema, lambda call, builder: None)


def test_registered_inference_must_give_struct_info():
    op.define("test.nothing", "x: Tensor", lambda call, builder: None)
    with pytest.raises(TypeError, match="test.nothing: expected struct info"):
        infer(op.test.nothing(x))


def test_every_definition_is_complete():
    for name in map(str, tvm.ir.Op.list_op_names()):
        if not name.startswith("relax."):
            continue
        operator = tvm.ir.Op.get(name)
        for attr in ("FInferStructInfo", "FPurity", "TOpPattern", "TMixedPrecisionPolicy"):
            assert operator.has_attr(attr), f"{name} has no {attr}"
        assert operator.description, name
