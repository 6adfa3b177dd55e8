# SPDX-License-Identifier: Apache-2.0
"""Small models for tests."""

import numpy as np
import onnx
from onnx import TensorProto, helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, weights=None, opset=21, **kwargs):
    """A model of nodes; weights are arrays by name."""
    initializers = [onnx.numpy_helper.from_array(a, n) for n, a in (weights or {}).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", opset), *kwargs.pop("opsets", [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, **kwargs)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def linear(batch="batch"):
    """x · w + b, then relu."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.random((4, 3), "float32"), "b": rng.random(3, "float32")}
    nodes = [node("MatMul", "x w", "p"), node("Add", "p b", "s"), node("Relu", "s", "y")]
    return model(nodes, [value("x", (batch, 4))], [value("y", (batch, 3))], weights)
