# SPDX-License-Identifier: Apache-2.0
"""Whole kernels, each written once for every subject: nobody schedules or tunes ours."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .programs import Timed, host_target


@dataclass
class Kernel:
    shapes: list  # of the inputs
    ours: Callable  # (te, *tensors) -> tensor
    torch: Callable  # (torch, *tensors) -> tensor
    onnx: str  # the operator
    attributes: dict = None
    constants: list = ()  # further inputs of the operator

    def inputs(self, seed):
        random = np.random.default_rng(seed)
        return [random.normal(size=shape).astype(np.float32) for shape in self.shapes]


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


def _gelu(te, a):
    return te.compute(
        a.shape, lambda *i: a(*i) * 0.5 * (1 + te.erf(a(*i) * 0.7071067811865476)), "out"
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


KERNELS = {
    "softmax": Kernel([(1024, 1024)], _softmax, lambda t, a: t.softmax(a, 1), "Softmax"),
    "layer_norm": Kernel(
        [(1024, 1024), (1024,), (1024,)],
        _layer_norm,
        lambda t, a, s, b: t.nn.functional.layer_norm(a, (1024,), s, b),
        "LayerNormalization",
    ),
    "gelu": Kernel([(1024, 1024)], _gelu, lambda t, a: t.nn.functional.gelu(a), "Gelu"),
    "row_sum": Kernel(
        [(2048, 2048)], _row_sum, lambda t, a: a.sum(1), "ReduceSum", {"keepdims": 0}, [[1]]
    ),
    "column_sum": Kernel(
        [(2048, 2048)], _column_sum, lambda t, a: a.sum(0), "ReduceSum", {"keepdims": 0}, [[0]]
    ),
    "transpose": Kernel(
        [(2048, 2048)], _transpose, lambda t, a: a.T.contiguous(), "Transpose", {"perm": [1, 0]}
    ),
    "matmul": Kernel([(512, 512), (512, 512)], _matmul, lambda t, a, b: a @ b, "MatMul"),
    "conv2d": Kernel(
        [(1, 64, 58, 58), (64, 64, 3, 3)],
        _conv2d,
        lambda t, a, w: t.nn.functional.conv2d(a, w),
        "Conv",
    ),
}


def ours(name, inputs):
    """The kernel compiled without a schedule."""
    import tvm
    from tvm import te

    tensors = [te.placeholder(x.shape, "float32", f"A{i}") for i, x in enumerate(inputs)]
    result = KERNELS[name].ours(te, *tensors)
    func = te.create_prim_func([*tensors, result])
    function = tvm.compile(func, target=host_target())["main"]
    out = tvm.runtime.empty([int(s) for s in result.shape], "float32")
    return Timed(functools.partial(function, *map(tvm.runtime.tensor, inputs), out), out.numpy)


def torch(name, inputs):
    """The kernel as PyTorch runs it, without compiling."""
    import torch

    tensors = [torch.from_numpy(x) for x in inputs]
    call = functools.partial(KERNELS[name].torch, torch, *tensors)
    return Timed(call, lambda: call().numpy())


def onnxruntime(name, inputs, options):
    """The kernel as a model of one operator."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    kernel = KERNELS[name]
    names = [f"x{i}" for i in range(len(inputs))]
    constants = [
        numpy_helper.from_array(np.array(c), f"c{i}") for i, c in enumerate(kernel.constants)
    ]
    node = helper.make_node(
        kernel.onnx, names + [c.name for c in constants], ["y"], **(kernel.attributes or {})
    )

    def value(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    values = [value(n, x.shape) for n, x in zip(names, inputs, strict=True)]
    graph = helper.make_graph([node], name, values, [value("y", None)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feeds = dict(zip(names, inputs, strict=True))
    result = session.run(None, feeds)[0]
    out = onnxruntime.OrtValue.ortvalue_from_numpy(np.empty_like(result))
    binding = session.io_binding()
    for name, x in feeds.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(x))
    binding.bind_ortvalue_output("y", out)
    return Timed(functools.partial(session.run_with_iobinding, binding), out.numpy)
