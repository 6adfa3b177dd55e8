# SPDX-License-Identifier: Apache-2.0
"""Operators on quantised numbers give the bits that ONNX Runtime gives, and their products are
those of the small numbers themselves."""

import numpy as np
import onnxruntime
import pytest
import tvm
from onnx import TensorProto, helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from .models import model, value

RNG = np.random.default_rng(7)


def f32(*shape, low=-3.0, high=3.0):
    return RNG.uniform(low, high, shape).astype("float32")


def u8(*shape):
    return RNG.integers(0, 256, shape).astype("uint8")


def i8(*shape):
    """ONNX Runtime saturates sums of pairs of products of larger ones where the CPU has no VNNI."""
    return RNG.integers(-64, 64, shape).astype("int8")


def scale(*shape):
    return f32(*shape, low=0.01, high=0.1)


class Cases:
    """Nodes that share one model, so that it is compiled once. An array that is `fixed` is a
    constant, others are inputs."""

    def __init__(self):
        self.nodes, self.inputs, self.weights, self.outputs = [], {}, {}, []

    def add(self, op, *arrays, fixed=(), outputs=1, domain="", **attributes):
        names = []
        for i, array in enumerate(arrays):
            name = "" if array is None else f"a{len(self.nodes)}_{i}"
            names.append(name)
            if array is not None:
                (self.weights if i in fixed else self.inputs)[name] = array
        results = [f"y{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, names, results, domain=domain, **attributes))
        self.outputs += results

    def proto(self):
        infos = [
            value(n, a.shape, helper.np_dtype_to_tensor_dtype(a.dtype))
            for n, a in self.inputs.items()
        ]
        domains = [helper.make_opsetid("com.microsoft", 1)]
        made = model(
            self.nodes, infos, [value(o, None) for o in self.outputs], self.weights, opsets=domains
        )
        for output in made.graph.output:
            output.ClearField("type")
        return made

    def check(self):
        proto = self.proto()
        session = onnxruntime.InferenceSession(
            proto.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        vm = relax.VirtualMachine(tvm.compile(from_onnx(proto), target="llvm"), tvm.cpu())
        got = vm["main"](*map(tvm.runtime.tensor, self.inputs.values()))
        got = list(got) if len(self.outputs) > 1 else [got]
        by_output = {o: n for n in proto.graph.node for o in n.output}
        expected = session.run(None, self.inputs)
        for name, a, b in zip(self.outputs, got, expected, strict=True):
            what = f"{by_output[name].op_type} ({name})"
            assert a.numpy().dtype == b.dtype, what
            np.testing.assert_array_equal(a.numpy(), b, what)


def test_to_and_from_quantised_numbers():
    cases = Cases()
    x = f32(4, 6, low=-20, high=20)
    for zero in (np.uint8(117), np.int8(-5), np.uint16(30000), np.int16(-7)):
        cases.add("QuantizeLinear", x, scale(), np.array(zero))
    for make in (u8, i8):
        cases.add("QuantizeLinear", x, scale(6), make(6), fixed=(1, 2))
        cases.add("DequantizeLinear", make(4, 6), scale(4), make(4), axis=0)
        cases.add("DequantizeLinear", make(4, 6), scale(4, 2), make(4, 2), axis=1, block_size=3)
    cases.add("DequantizeLinear", RNG.integers(-9999, 9999, (4, 6)).astype("int32"), scale())
    ties = (np.arange(-40, 40) / 2).astype("float32")
    cases.add("QuantizeLinear", ties, np.array(1, "float32"), np.array(3, "int8"))
    cases.add("DynamicQuantizeLinear", x, outputs=3)
    cases.add("DynamicQuantizeLinear", np.abs(x) + 1, outputs=3)
    cases.add("DynamicQuantizeLinear", np.zeros((3, 4), "float32"), outputs=3)
    cases.check()


def test_products():
    cases = Cases()
    point = np.array(131, "uint8")
    for fixed in ((), (1, 3)):
        cases.add("MatMulInteger", u8(5, 16), i8(16, 7), point, np.array(0, "int8"), fixed=fixed)
        cases.add("MatMulInteger", u8(2, 5, 16), u8(16, 7), point, u8(7), fixed=fixed)
    cases.add("MatMulInteger", u8(5, 16), i8(16, 7))
    for zero in (np.zeros(7, "int8"), i8(7)):
        cases.add(
            "QLinearMatMul", u8(5, 16), scale(), point, i8(16, 7), scale(7), zero,
            np.array(0.3, "float32"), np.array(97, "uint8"), fixed=(3, 4, 5),
        )  # fmt: skip
    cases.add(
        "QGemm", u8(5, 16), scale(), point, i8(7, 16), scale(7), np.zeros(7, "int8"),
        RNG.integers(-500, 500, 7).astype("int32"), np.array(0.4, "float32"),
        np.array(120, "uint8"), fixed=(3, 4, 5), domain="com.microsoft", transB=1,
    )  # fmt: skip
    cases.check()


def test_convolutions():
    cases = Cases()
    point = np.array(131, "uint8")
    for weight in (i8(6, 4, 3, 3), u8(6, 4, 3, 3)):
        zero = np.array(0 if weight.dtype == np.int8 else 120, weight.dtype)
        cases.add("ConvInteger", u8(2, 4, 9, 8), weight, point, zero, fixed=(1, 3),
                  pads=[1, 1, 0, 2], strides=[2, 1])  # fmt: skip
        zeros = np.full(6, zero)
        bias = RNG.integers(-900, 900, 6).astype("int32")
        cases.add("QLinearConv", u8(2, 4, 9, 8), scale(), point, weight, scale(6), zeros,
                  np.array(0.7, "float32"), np.array(99, "uint8"), bias, fixed=(3, 4, 5, 8),
                  pads=[1, 1, 1, 1])  # fmt: skip
    cases.add("QLinearConv", u8(1, 6, 7, 7), scale(), point, i8(6, 1, 3, 3), scale(),
              np.array(0, "int8"), np.array(0.2, "float32"), np.array(0, "uint8"), fixed=(3, 5),
              group=6, auto_pad="SAME_UPPER")  # fmt: skip
    cases.check()


@pytest.mark.parametrize("op", ["MatMulInteger", "QLinearConv"])
def test_products_take_small_numbers(op):
    """Weights are not widened: kernels for 8-bit numbers can take them."""
    cases = Cases()
    point = np.array(3, "uint8")
    if op == "MatMulInteger":
        cases.add(op, u8(5, 16), i8(16, 7), point, fixed=(1,))
    else:
        cases.add(op, u8(1, 4, 8, 8), scale(), point, i8(6, 4, 3, 3), scale(), np.array(0, "int8"),
                  scale(), point, fixed=(3, 5), pads=[1] * 4)  # fmt: skip
    found = []

    def look(e):
        if isinstance(e, relax.Call) and e.op.name in ("relax.matmul", "relax.nn.conv2d"):
            found.append([a.struct_info.dtype for a in e.args] + [e.struct_info.dtype])

    relax.analysis.post_order_visit(from_onnx(cases.proto())["main"], look)
    assert found == [["uint8", "int8", "int32"]]


def test_quantised_product_of_floats_is_refused():
    f8 = TensorProto.FLOAT8E4M3FN
    made = helper.make_node("QLinearMatMul", ["a", "s", "z", "b", "s", "z", "s", "z"], ["y"])
    infos = [value("a", (2, 2), f8), value("b", (2, 2), f8), value("z", (), f8), value("s", ())]
    with pytest.raises(tvm.error.OpNotImplemented, match="a product of float8_e4m3fn"):
        from_onnx(model([made], infos, [value("y", None, f8)]))
