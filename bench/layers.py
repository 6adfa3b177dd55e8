# SPDX-License-Identifier: Apache-2.0
"""Models of one layer with constant weights: products, and convolutions of networks."""

import numpy as np


def _product(rows, columns, depth):
    def run(ops, x):
        return [ops.linear(x, ops.weight("weight", (columns, depth)), None)]

    return run, {"x": ("float32", (rows, depth))}


def _convolution(channels, size, filters, window, step, groups):
    def run(ops, x):
        weight = ops.weight("weight", (filters, channels // groups, window, window))
        return [ops.conv2d(x, weight, step, window // 2, groups)]

    return run, {"x": ("float32", (1, channels, size, size))}


class _Shapes:
    """Operators on shapes: which convolutions a network has, (channels, size, filters, …)."""

    def __init__(self):
        self.convolutions = {}

    def weight(self, name, shape, *_):
        return shape

    def conv2d(self, x, weight, stride, padding, groups):
        _, channels, size, _ = x
        self.convolutions[channels, size, weight[0], weight[2], stride, groups] = None
        return (1, weight[0], *[(size + 2 * padding - weight[2]) // stride + 1] * 2)

    def max_pool(self, x, kernel, stride, padding):
        return (*x[:2], *[(x[2] + 2 * padding - kernel) // stride + 1] * 2)

    def __getattr__(self, name):  # what is left keeps the shape of its first operand
        return lambda x, *_: x


def convolutions(network):
    shapes = _Shapes()
    network(shapes, (1, 3, 224, 224))
    return list(shapes.convolutions)


def _odd():
    """Sizes that tiles do not divide."""
    random = np.random.default_rng(0)
    yield from ((n, n, n) for n in (127, 333, 1000))
    yield from (tuple(map(int, random.integers(1, 2000, 3))) for _ in range(9))


# {what is printed as one: (the ratio to the best peer that it should have, sizes)}
PRODUCTS = {
    "squares": (0.95, [(n, n, n) for n in (512, 1024, 2048, 4096)]),
    "few rows": (1.1, [(m, n, n) for n in (1024, 2048, 4096) for m in (1, 2, 4, 8, 16, 32)]),
    "odd sizes": (0.95, list(_odd())),
}
PRODUCT_PEERS = ("numpy", "torch", "openvino")
CONVOLUTION_PEERS = ("torch", "onnxruntime", "openvino")


def product_name(sizes):
    return "layer " + "x".join(map(str, sizes))


def convolution_name(sizes):
    return "layer conv " + " ".join(map(str, sizes))


def find(name):
    """The function and the signature of a layer, from its name."""
    *_, sizes = name.partition("layer ")
    if sizes.startswith("conv "):
        return _convolution(*map(int, sizes.split()[1:]))
    return _product(*map(int, sizes.split("x")))
