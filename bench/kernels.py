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
    dtype: str = "float32"  # of the inputs; bfloat16 travels as float32
    torch: Callable = None  # (torch, *tensors) -> tensor, of kernels that only PyTorch has, too

    def inputs(self, seed):
        random = np.random.default_rng(seed)
        if self.dtype == "int8":
            # 7 bits: without VNNI PyTorch's sums of two products of 8 bits saturate.
            return [random.integers(-64, 64, shape, np.int8) for shape in self.shapes]
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


def _conv2d(te, a, w, step=1, margin=0, depthwise=False):
    def padded(n, c, i, j):
        rows, columns = a.shape[2], a.shape[3]
        inside = [i >= margin, i < rows + margin, j >= margin, j < columns + margin]
        value = a[n, c, i - margin, j - margin]
        return te.if_then_else(te.all(*inside), value, 0.0)

    size = [int(s) + 2 * margin for s in a.shape[2:]]
    source = te.compute((1, a.shape[1], *size), padded, "padded") if margin else a
    c, y, x = (te.reduce_axis((0, e), n) for e, n in zip(w.shape[1:], "cyx", strict=True))
    shape = [(s - int(k)) // step + 1 for s, k in zip(size, w.shape[2:], strict=True)]

    def value(n, o, i, j):
        channel = o if depthwise else c
        return te.sum(source[n, channel, i * step + y, j * step + x] * w[o, c, y, x], [c, y, x])

    return te.compute((1, w.shape[0], *shape), value, "out")


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


# ---- the list that the default rules are measured by ---------------------------------------------
def _product(rows, columns, depth, turned=False, dtype="float32", out="float32"):
    """A product, also by a weight whose rows are the columns of the result."""

    def tensor(te, a, b):
        k = te.reduce_axis((0, depth), "k")

        def value(i, j):
            right = b[j, k] if turned else b[k, j]
            return te.sum(a[i, k].astype(out) * right.astype(out), k)

        return te.compute((rows, columns), value, "out")

    def peer(torch, a, b):
        b = b.T if turned else b
        return torch._int_mm(a, b) if dtype == "int8" else a @ b

    right = (columns, depth) if turned else (depth, columns)
    return Kernel([(rows, depth), right], tensor, dtype=dtype, torch=peer)


def _convolution(channels, size, filters, window, step=1, depthwise=False):
    margin = window // 2
    options = {"step": step, "margin": margin, "depthwise": depthwise}
    weight = (filters, 1 if depthwise else channels, window, window)

    def peer(torch, a, w):
        groups = channels if depthwise else 1
        return torch.nn.functional.conv2d(a, w, stride=step, padding=margin, groups=groups)

    tensor = functools.partial(_conv2d, **options)
    return Kernel([(1, channels, size, size), weight], tensor, torch=peer)


def _attention(tokens, causal=False, heads=12, size=64):
    """Queries, keys and values of (1, tokens, heads, size)."""

    def tensor(te, q, k, v):
        from tvm import topi

        return topi.nn.attention(q, k, v, causal_mask="TopLeft" if causal else None)

    def peer(torch, q, k, v):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        attention = torch.nn.functional.scaled_dot_product_attention
        return attention(q, k, v, is_causal=causal).transpose(1, 2)

    return Kernel([(1, tokens, heads, size)] * 3, tensor, torch=peer)


def _listed():
    sides = [(n, n, n) for n in (127, 512, 1000, 1024, 2048)]
    linear = [(128, 768, 768), (128, 3072, 768), (1, 4096, 4096)]
    for m, n, k in [*sides, (16, 4096, 4096), *linear]:
        yield f"product {m}x{n}x{k}", _product(m, n, k)
    for m, n, k in linear:
        yield f"product {m}x{n}x{k} by W.T", _product(m, n, k, turned=True)
    for m, n, k in [(1024, 1024, 1024), (2048, 2048, 2048), (128, 768, 768)]:
        yield f"product {m}x{n}x{k} bfloat16", _product(m, n, k, dtype="bfloat16")
    for m, n, k in [(1024, 1024, 1024), (128, 768, 768)]:
        yield f"product {m}x{n}x{k} int8", _product(m, n, k, dtype="int8", out="int32")
    yield "convolution 32 112 depthwise 3", _convolution(32, 112, 32, 3, depthwise=True)
    for shape in [
        (64, 56, 64, 3),
        (256, 14, 256, 3),
        (512, 7, 512, 3),
        (3, 224, 64, 7, 2),
        (256, 56, 64, 1),
        (1024, 14, 256, 1),
        (128, 56, 128, 3, 2),
    ]:
        yield "convolution " + " ".join(map(str, shape)), _convolution(*shape)
    for tokens, causal in [(128, False), (1024, False), (1024, True)]:
        yield f"attention {tokens}" + (" causal" if causal else ""), _attention(tokens, causal)


LISTED = dict(_listed())


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
