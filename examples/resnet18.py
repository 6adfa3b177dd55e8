# SPDX-License-Identifier: Apache-2.0
"""A ResNet-18 with random weights: built, compiled, checked against NumPy, timed."""

import time

import numpy as np
import tvm
from tvm import relax


class Graph:
    """The operators of the network, as bindings of a graph."""

    def __init__(self, builder):
        self.emit = builder.emit

    def conv(self, x, w, stride, pad):
        return self.emit(relax.op.nn.conv2d(x, relax.const(w), strides=stride, padding=pad))

    def affine(self, x, scale, shift):
        x = self.emit(relax.op.multiply(x, relax.const(scale)))
        return self.emit(relax.op.add(x, relax.const(shift)))

    def relu(self, x):
        return self.emit(relax.op.nn.relu(x))

    def add(self, x, y):
        return self.emit(relax.op.add(x, y))

    def max_pool(self, x):
        return self.emit(relax.op.nn.max_pool2d(x, (3, 3), strides=2, padding=1))

    def classify(self, x, w):
        return self.emit(relax.op.matmul(self.emit(relax.op.mean(x, [2, 3])), relax.const(w)))


class Arrays:
    """The same operators on arrays."""

    @staticmethod
    def _windows(x, size, stride, pad, fill=0.0):
        x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=fill)
        windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))
        return windows[:, :, ::stride, ::stride]

    def conv(self, x, w, stride, pad):
        windows = self._windows(x, w.shape[2], stride, pad)
        return np.einsum("nchwij,ocij->nohw", windows, w, optimize=True)

    def affine(self, x, scale, shift):
        return x * scale + shift

    def relu(self, x):
        return np.maximum(x, 0)

    def add(self, x, y):
        return x + y

    def max_pool(self, x):
        return self._windows(x, 3, 2, 1, -np.inf).max((4, 5))

    def classify(self, x, w):
        return x.mean((2, 3)) @ w


def resnet18(ops, x):
    """Eight blocks of two convolutions behind a stem; the weights are the same in every call."""
    rng = np.random.default_rng(0)

    def conv_norm(x, channels, filters, size, stride):
        w = rng.standard_normal((filters, channels, size, size), "float32")
        y = ops.conv(x, w * np.float32((2 / (channels * size * size)) ** 0.5), stride, size // 2)
        scale = rng.uniform(0.5, 1, (1, filters, 1, 1)).astype("float32")
        return ops.affine(y, scale, rng.standard_normal((1, filters, 1, 1), "float32") / 10)

    x = ops.max_pool(ops.relu(conv_norm(x, 3, 64, 7, 2)))
    channels = 64
    for stage in range(4):
        for block in range(2):
            filters, stride = 64 << stage, 2 if stage > 0 and block == 0 else 1
            y = ops.relu(conv_norm(x, channels, filters, 3, stride))
            y = conv_norm(y, filters, filters, 3, 1)
            if channels != filters:
                x = conv_norm(x, channels, filters, 1, stride)
            x, channels = ops.relu(ops.add(y, x)), filters
    return ops.classify(x, rng.standard_normal((512, 1000), "float32") / 20)


def main():
    builder = relax.BlockBuilder()
    image = relax.Var("image", relax.TensorStructInfo((1, 3, 224, 224), "float32"))
    with builder.function("main", [image]):
        with builder.dataflow():
            out = builder.emit_output(resnet18(Graph(builder), image))
        builder.emit_func_output(out)
    module = builder.get()
    print("ResNet-18: built")

    begin = time.perf_counter()
    executable = tvm.compile(module, target="llvm")
    print(f"  compiled in {time.perf_counter() - begin:.2f} s")

    vm = relax.VirtualMachine(executable, tvm.cpu())
    data = np.random.default_rng(1).standard_normal((1, 3, 224, 224), "float32")
    found, expected = vm["main"](data).numpy(), resnet18(Arrays(), data)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    print(f"  largest difference from NumPy, relative to the largest value: {error:.1e}")
    assert error < 1e-4

    argument = tvm.runtime.tensor(data)
    vm.save_function("main", "measured", argument)
    seconds = vm.time_evaluator("measured", tvm.cpu(), number=1, repeat=10)().median
    print(f"  {1e3 * seconds:.1f} ms an image, {3.6 / seconds:.0f} GFLOP/s")


if __name__ == "__main__":
    main()
