# SPDX-License-Identifier: Apache-2.0
"""A whole model, ResNet-18 with random weights: compiled, checked against NumPy and timed."""

import time

import numpy as np
import tvm
from tvm import relax

rng = np.random.default_rng(0)


def weight(*shape):
    """Keeps the size of activations from layer to layer."""
    return rng.standard_normal(shape, "float32") * np.float32(np.sqrt(2 / np.prod(shape[1:])))


# 1. The network once, as what its layers are; `ops` says what a layer means.
def resnet18(ops, x):
    def convolve(x, filters, kernel, stride=1):
        shape = (filters, ops.channels(x), kernel, kernel)
        return ops.conv2d(x, weight(*shape), stride, kernel // 2)

    x = ops.max_pool(ops.relu(convolve(x, 64, 7, 2)))
    for stage in range(4):
        for block in range(2):
            filters, stride = 64 << stage, 2 if stage > 0 and block == 0 else 1
            y = ops.relu(convolve(x, filters, 3, stride))
            y = convolve(y, filters, 3) * np.float32(0.5)
            if ops.channels(x) != filters:
                x = convolve(x, filters, 1, stride)
            x = ops.relu(x + y)
    return ops.mean(x) @ weight(1000, 512).T


class NumPy:
    """The layers on arrays."""

    relu = staticmethod(lambda x: np.maximum(x, 0))
    mean = staticmethod(lambda x: x.mean((2, 3)))
    channels = staticmethod(lambda x: x.shape[1])

    @staticmethod
    def windows(x, kernel, stride, pad, fill):
        x = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)], constant_values=fill)
        view = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (2, 3))
        return view[:, :, ::stride, ::stride]

    def max_pool(self, x):
        return self.windows(x, 3, 2, 1, -np.inf).max((-1, -2))

    def conv2d(self, x, w, stride, pad):
        out = np.tensordot(self.windows(x, w.shape[2], stride, pad, 0), w, ([1, 4, 5], [1, 2, 3]))
        return out.transpose(0, 3, 1, 2)


class Value(np.lib.mixins.NDArrayOperatorsMixin):
    """An expression of a graph with the operators of an array."""

    def __init__(self, graph, expr):
        self.graph, self.expr = graph, expr

    def __array_ufunc__(self, ufunc, method, *args):
        op = {"add": relax.op.add, "multiply": relax.op.multiply, "matmul": relax.op.matmul}
        exprs = [a.expr if isinstance(a, Value) else relax.const(a, "float32") for a in args]
        return self.graph.emit(op[ufunc.__name__](*exprs))


class Graph:
    """The layers as operators of a graph, one binding each."""

    def __init__(self, builder):
        self.builder = builder

    def emit(self, expr):
        return Value(self, self.builder.emit(expr))

    def channels(self, x):
        return int(x.expr.struct_info.shape[1])

    def relu(self, x):
        return self.emit(relax.op.nn.relu(x.expr))

    def mean(self, x):
        return self.emit(relax.op.mean(x.expr, [2, 3]))

    def max_pool(self, x):
        return self.emit(relax.op.nn.max_pool2d(x.expr, (3, 3), strides=(2, 2), padding=(1, 1)))

    def conv2d(self, x, w, stride, pad):
        return self.emit(relax.op.nn.conv2d(x.expr, relax.const(w), strides=stride, padding=pad))


builder = relax.BlockBuilder()
image = relax.Var("image", relax.TensorStructInfo((1, 3, 224, 224), "float32"))
with builder.function("main", [image]):
    graph = Graph(builder)
    with builder.dataflow():
        scores = builder.emit_output(resnet18(graph, Value(graph, image)).expr)
    builder.emit_func_output(scores)
mod = builder.finalize()

# 2. Compile it for the CPU this runs on.
begin = time.perf_counter()
executable = tvm.compile(mod, "llvm")
compile_s = time.perf_counter() - begin
vm = relax.VirtualMachine(executable, tvm.cpu())

# 3. Run it, and compare with the same layers (the same weights, from the same seed) in NumPy.
picture = np.random.default_rng(1).standard_normal((1, 3, 224, 224), "float32")
result = vm["main"](picture).numpy()
rng = np.random.default_rng(0)
expected = resnet18(NumPy(), picture)
error = np.abs(result - expected).max() / np.abs(expected).max()

times = []
picture = tvm.runtime.tensor(picture)
for _ in range(20):
    begin = time.perf_counter()
    vm["main"](picture)
    times.append(time.perf_counter() - begin)

print("ResNet-18, one picture of 224 x 224, float32")
print(f"  compiled in        {compile_s * 1e3:8.1f} ms")
print(f"  largest error      {error:8.1e} of the largest score")
print(f"  this library       {np.median(times) * 1e3:8.1f} ms per picture")
if not error < 1e-4:
    raise SystemExit("the result is wrong")
print("The result is right.")
