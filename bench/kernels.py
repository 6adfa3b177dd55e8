# SPDX-License-Identifier: Apache-2.0
"""What is computed: shapes, data, and each kernel as a tensor expression. Nobody schedules ours.

This file runs in workers, ours and Apache TVM's, so both compile the same text.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass
class Kernel:
    shapes: list  # of the inputs
    te: Callable  # (te, *tensors) -> tensor
    exact: Callable = None  # in double precision, of elementwise functions
    copies: bool = False  # the result has as many bytes as the only large input
    scale: float = 1  # of the data
    positive: bool = False

    def inputs(self, seed):
        random = np.random.default_rng(seed)
        inputs = [random.normal(0, self.scale, shape) for shape in self.shapes]
        return [(np.exp(x) if self.positive else x).astype(np.float32) for x in inputs]


def _elementwise(function, **more):
    def tensor(te, a):
        return te.compute(a.shape, lambda *i: function(te, a(*i)), "out")

    return Kernel([(1024, 1024)], tensor, copies=True, **more)


def _softmax(te, a):
    n, m = a.shape
    k, l = te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "l")
    top = te.compute((n,), lambda i: te.max(a[i, k], k), "top")
    e = te.compute((n, m), lambda i, j: te.exp(a[i, j] - top[i]), "e")
    total = te.compute((n,), lambda i: te.sum(e[i, l], l), "total")
    return te.compute((n, m), lambda i, j: e[i, j] / total[i], "out")


def _layer_norm(te, a, scale, bias):
    n, m = a.shape
    k, l = te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "l")
    total = te.compute((n,), lambda i: te.sum(a[i, k], k), "total")
    mean = te.compute((n,), lambda i: total[i] / m, "mean")
    square = te.compute(
        (n,), lambda i: te.sum((a[i, l] - mean[i]) * (a[i, l] - mean[i]), l), "square"
    )
    return te.compute(
        (n, m),
        lambda i, j: (a[i, j] - mean[i]) * te.rsqrt(square[i] / m + 1e-5) * scale[j] + bias[j],
        "out",
    )


def _row_sum(te, a):
    k = te.reduce_axis((0, a.shape[1]), "k")
    return te.compute((a.shape[0],), lambda i: te.sum(a[i, k], k), "out")


def _column_sum(te, a):
    k = te.reduce_axis((0, a.shape[0]), "k")
    return te.compute((a.shape[1],), lambda i: te.sum(a[k, i], k), "out")


def _transpose(te, a):
    return te.compute((a.shape[1], a.shape[0]), lambda i, j: a[j, i], "out")


def _matmul(te, a, b):
    k = te.reduce_axis((0, a.shape[1]), "k")
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], k), "out")


def _conv2d(te, a, w):
    c, y, x = (te.reduce_axis((0, e), n) for e, n in zip(w.shape[1:], "cyx", strict=True))
    shape = (1, w.shape[0], a.shape[2] - w.shape[2] + 1, a.shape[3] - w.shape[3] + 1)
    return te.compute(
        shape,
        lambda n, o, i, j: te.sum(a[n, c, i + y, j + x] * w[o, c, y, x], [c, y, x]),
        "out",
    )


ELEMENTWISE = {
    "sigmoid": _elementwise(
        lambda te, x: 1 / (1 + te.exp(-x)), exact=lambda x: 1 / (1 + np.exp(-x)), scale=3
    ),
    "exp": _elementwise(lambda te, x: te.exp(x), exact=np.exp, scale=3),
    "tanh": _elementwise(lambda te, x: te.tanh(x), exact=np.tanh, scale=3),
    "erf": _elementwise(
        lambda te, x: te.erf(x), exact=np.vectorize(math.erf, otypes=[np.float64]), scale=3
    ),
    "log": _elementwise(lambda te, x: te.log(x), exact=np.log, scale=3, positive=True),
    "gelu": _elementwise(lambda te, x: x * 0.5 * (1 + te.erf(x * 0.7071067811865476))),
}
KERNELS = {
    **ELEMENTWISE,
    "softmax": Kernel([(1024, 1024)], _softmax, copies=True),
    "layer_norm": Kernel([(1024, 1024), (1024,), (1024,)], _layer_norm, copies=True),
    "row_sum": Kernel([(2048, 2048)], _row_sum),
    "column_sum": Kernel([(2048, 2048)], _column_sum),
    "transpose": Kernel([(2048, 2048)], _transpose, copies=True),
    "matmul": Kernel([(512, 512), (512, 512)], _matmul),
    "conv2d": Kernel([(1, 64, 58, 58), (64, 64, 3, 3)], _conv2d),
}


@functools.cache
def onnx_model(name, *shapes):
    """The kernel as a model of one operator, serialized."""
    from onnx import TensorProto, helper, numpy_helper, shape_inference

    operators = {"layer_norm": "LayerNormalization", "matmul": "MatMul", "conv2d": "Conv"}
    operators |= {"row_sum": "ReduceSum", "column_sum": "ReduceSum"}
    attributes = {"row_sum": {"keepdims": 0}, "column_sum": {"keepdims": 0}}
    attributes["transpose"] = {"perm": [1, 0]}
    further = {"row_sum": [[1]], "column_sum": [[0]]}.get(name, [])
    constants = [numpy_helper.from_array(np.array(c), f"c{i}") for i, c in enumerate(further)]
    names = [f"x{i}" for i in range(len(shapes))]
    operands = names + [c.name for c in constants]
    operator = operators.get(name, name.capitalize())
    node = helper.make_node(operator, operands, ["y"], **attributes.get(name, {}))

    def value(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    values = [value(n, shape) for n, shape in zip(names, shapes, strict=True)]
    graph = helper.make_graph([node], name, values, [value("y", None)], constants)
    opsets = [helper.make_opsetid("", 20)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return shape_inference.infer_shapes(model).SerializeToString()
