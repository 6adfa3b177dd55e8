# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of operators: errors name the operator, what was expected and what came."""

import pytest
import tvm
from tvm import relax
from tvm.relax import TensorStructInfo, op


def tensor(*shape, dtype="float32", name="x"):
    return relax.Var(name, TensorStructInfo(shape, dtype))


def infer(call):
    return relax.BlockBuilder().normalize(call).struct_info


n = tvm.tir.Var("n", "int64")
x, y = tensor(2, 3), tensor(4, 5)
ints = tensor(2, 3, dtype="int32")
unknown = relax.Var("u", TensorStructInfo(dtype="float32"))
gv = relax.GlobalVar("f")

VALUE_ERRORS = {
    "add: expected shapes that broadcast, got (2, 3) and (4, 5): dimension 1 is 3 and 5": lambda: (
        op.add(x, y)
    ),
    "sum: expected an axis in [-2, 1] for 2 dimensions, got 2": lambda: op.sum(x, 2),
    "sum: expected axes that differ, got axis 1 twice": lambda: op.sum(x, [1, -1]),
    "matmul: expected the last dimension of (2, 3) and dimension 0 of (4, 5) to be equal, got 3 "
    "and 4": lambda: op.matmul(x, y),
    "matmul: expected operands of at least 1 dimension": lambda: op.matmul(tensor(), x),
    "concat: expected shapes that agree outside the axis, got (2, 3) and (4, 5): dimension 1 is 3 "
    "and 5": lambda: op.concat([x, y]),
    "concat: expected at least one tensor, got none": lambda: op.concat([]),
    "concat: expected tensors of one rank": lambda: op.concat([x, tensor(3)]),
    "stack: expected shapes that agree, got (2, 3) and (4, 5)": lambda: op.stack([x, y]),
    "reshape: expected as many elements as before, got (2, 3) with 6 and (4,) with 4": lambda: (
        op.reshape(x, (4,))
    ),
    "reshape: expected at most one -1, got (-1, -1)": lambda: op.reshape(x, (-1, -1)),
    "reshape: expected an operand of known shape for (-1,), got unknown rank": lambda: op.reshape(
        unknown, (-1,)
    ),
    "reshape: expected the elements of (2, 3) to be a multiple of those of (4, -1) without -1, got "
    "6 for 4": lambda: op.reshape(x, (4, -1)),
    "permute_dims: expected 2 axes for the shape (2, 3), got 3": lambda: op.permute_dims(
        x, [0, 1, 2]
    ),
    "broadcast_to: expected shapes that broadcast, got (2, 3) and (2, 4)": lambda: op.broadcast_to(
        x, (2, 4)
    ),
    "split: expected a positive number of sections, got 0": lambda: op.split(x, 0),
    "take: expected a tensor of 1 dimension for axis None": lambda: op.take(x, ints),
    "strided_slice: expected as many end as axes, got 2 and 1": lambda: op.strided_slice(
        x, [0], [0], [1, 2]
    ),
    "strided_slice: expected strides other than 0, got 0": lambda: op.strided_slice(
        x, [0], [0], [1], [0]
    ),
    "topk: expected k of at most the dimension 3, got 4": lambda: op.topk(x, 4),
    "topk: expected ret_type to be one of 'both', 'values', 'indices', got 'all'": lambda: op.topk(
        x, 1, ret_type="all"
    ),
    "nn.conv2d: expected the channels of data and those of weight times groups to be equal, got 3 "
    "and 4": lambda: op.nn.conv2d(tensor(1, 3, 8, 8), tensor(4, 4, 3, 3)),
    "nn.conv2d: expected data to have 4 dimensions, got (2, 3)": lambda: op.nn.conv2d(
        x, tensor(4, 3, 3, 3)
    ),
    "nn.conv2d: expected output channels that groups = 3 divides, got 4": lambda: op.nn.conv2d(
        tensor(1, 3, 8, 8), tensor(4, 1, 3, 3), groups=3
    ),
    "expected 1, 2 or 4 numbers for padding, got 3": lambda: op.nn.conv2d(
        tensor(1, 3, 8, 8), tensor(4, 3, 3, 3), padding=(1, 1, 1)
    ),
    "nn.max_pool2d: expected a window that fits in the padded data": lambda: op.nn.max_pool2d(
        tensor(1, 1, 2, 2), pool_size=9
    ),
    "nn.layer_norm: expected gamma of dimension 3 for axis 1 of (2, 3), got (4,)": lambda: (
        op.nn.layer_norm(x, tensor(4), tensor(3), -1)
    ),
    "nn.group_norm: expected channels that num_groups = 2 divides, got 3": lambda: op.nn.group_norm(
        tensor(2, 3, 4), tensor(3), tensor(3), 2, 1, [2]
    ),
    "nn.attention: expected the head dimensions of query and key to be equal, got 8 and 7": (
        lambda: op.nn.attention(tensor(1, 2, 3, 8), tensor(1, 2, 3, 7), tensor(1, 2, 3, 8))
    ),
    "nn.pad: expected 4 numbers in pad_width for the shape (2, 3), got 2": lambda: op.nn.pad(
        x, [1, 1]
    ),
    "einsum: expected 2 operands for 'ij,jk->ik', got 1": lambda: op.einsum([x], "ij,jk->ik"),
    "einsum: expected one extent for 'j' in 'ij,jk->ik', got 3 and 4": lambda: op.einsum(
        [x, y], "ij,jk->ik"
    ),
    "memory.view: expected a view inside the 24 bytes of (2, 3) of float32, got one that needs "
    "28": lambda: op.memory.view(x, (7,)),
    "call_tir_inplace: expected 1 inplace_indices, one for each result, got 2": lambda: (
        op.call_tir_inplace(gv, (x,), [0, 0], x.struct_info)
    ),
    "call_tir_inplace: expected a result of the shape and type of the argument": lambda: (
        op.call_tir_inplace(gv, (x,), 0, y.struct_info)
    ),
    "add: expected 2 arguments, got 1": lambda: relax.Call(tvm.ir.Op.get("relax.add"), [x]),
    "ccl.scatter_from_worker0: expected a dimension that num_workers = 4 divides, got 2": lambda: (
        op.ccl.scatter_from_worker0(x, 4)
    ),
}

TYPE_ERRORS = {
    "add: expected operands of one type, got float32 and int32": lambda: op.add(x, ints),
    "exp: expected operands of a floating-point type, got int32": lambda: op.exp(ints),
    "nn.softmax: expected data of a floating-point type, got int32": lambda: op.nn.softmax(ints),
    "take: expected indices of an integer type, got float32": lambda: op.take(x, y, 0),
    "where: expected a condition of type bool, got float32": lambda: op.where(x, x, x),
    'mean: expected x of a type of numbers, got bool; write R.astype(x, "float32")': lambda: (
        op.mean(tensor(2, 3, dtype="bool"))
    ),
    "std: expected x of a type of numbers, got bool": lambda: op.std(tensor(2, dtype="bool")),
    "nn.avg_pool2d: expected data of a type of numbers, got bool": lambda: op.nn.avg_pool2d(
        tensor(1, 2, 8, 8, dtype="bool")
    ),
    "concat: expected tensors of one type, got float32 and int32": lambda: op.concat([x, ints]),
    "exp: argument 'x': expected a tensor or a scalar, got": lambda: op.exp(
        relax.Var("s", relax.ShapeStructInfo([2]))
    ),
    "sum: argument 'x': expected a tensor, got": lambda: op.sum(
        relax.Var("o", relax.ObjectStructInfo())
    ),
    "reshape: argument 'shape': expected a shape, got": lambda: op.reshape(x, y),
    "concat: argument 'tensors': expected a tuple, got": lambda: op.concat(x),
    "call_tir: expected a function of the module as 'gvar', got relax.expr.ExternFunc": lambda: (
        op.call_tir("name", (x,), x.struct_info)
    ),
    "call_tir: expected out_sinfo of tensors with dimensions, got": lambda: op.call_tir(
        gv, (x,), unknown.struct_info
    ),
    "assert_op: expected a bool scalar as condition": lambda: op.assert_op(x),
    "sum: expected attributes of type relax.attrs.StatisticalAttrs, got None": lambda: relax.Call(
        tvm.ir.Op.get("relax.sum"), [x]
    ),
    "reshape: parameter 'shape': expected a shape, got": lambda: op.reshape(x, "text"),
    "sum: parameter 'axis': ": lambda: op.sum(x, "text"),
}


@pytest.mark.parametrize("message", VALUE_ERRORS)
def test_values_that_do_not_fit(message):
    with pytest.raises(ValueError) as error:
        infer(VALUE_ERRORS[message]())
    assert message in str(error.value)
    assert isinstance(error.value, tvm.TVMError)


@pytest.mark.parametrize("message", TYPE_ERRORS)
def test_types_that_do_not_fit(message):
    with pytest.raises(TypeError) as error:
        infer(TYPE_ERRORS[message]())
    assert message in str(error.value)
    assert isinstance(error.value, tvm.TVMError)


def test_symbolic_dims_that_differ():
    a = relax.Var("a", TensorStructInfo((n, 3), "float32"))
    b = relax.Var("b", TensorStructInfo((n + 1, 3), "float32"))
    with pytest.raises(tvm.TVMError, match="dimension 0 is n and n \\+ "):
        infer(op.concat([a, b], axis=1))


def test_different_devices():
    a, b = (tvm.ir.VDevice("llvm", i, "global") for i in (0, 1))
    left, right = (relax.Var("v", TensorStructInfo((2,), "float32", d)) for d in (a, b))
    with pytest.raises(ValueError, match="add: expected tensors on one device, got"):
        infer(op.add(left, right))
    assert infer(op.concat([left, right])).vdevice is None


def test_python_signatures():
    with pytest.raises(TypeError, match="unexpected keyword argument 'ax'"):
        op.sum(x, ax=1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x2'"):
        op.add(x)
    with pytest.raises(AttributeError, match="did you mean 'softmax'"):
        op.nn.sofmax  # noqa: B018
