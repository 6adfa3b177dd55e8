# SPDX-License-Identifier: Apache-2.0
"""Whole models, each defined once: a function of a set of operators (`model_ops`) and inputs.

    torch_module(Model("mlp"))   a torch.nn.Module
    relax_module(Model("mlp"))   an IRModule whose main takes the inputs; the weights are constants
    onnx_model(Model("mlp"))     the bytes of an ONNX model

All have the same weights: random ones, from the seed and their names.
"""

import dataclasses
import math
import zlib

import numpy as np


class Weights:
    """Named arrays, made when they are first asked for."""

    def __init__(self, seed=0):
        self.seed, self.arrays = seed, {}

    def __call__(self, name, shape, spread=None, offset=0.0):
        if name not in self.arrays:
            rng = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
            if spread is None:  # keeps the size of activations from layer to layer
                spread = math.sqrt(2 / max(1, math.prod(shape[1:])))
            array = rng.standard_normal(shape, np.float32) * np.float32(spread)
            self.arrays[name] = array + np.float32(offset)
        return self.arrays[name]


# ---- convolutional networks ----------------------------------------------------------------------
def _conv_norm(ops, x, name, channels, filters, kernel, stride=1, groups=1):
    weight = ops.weight(f"{name}.weight", (filters, channels // groups, kernel, kernel))
    x = ops.conv2d(x, weight, stride, kernel // 2, groups)
    gamma, var = (ops.weight(f"{name}.{p}", (filters,), 0.05, 1.0) for p in ("gamma", "var"))
    beta, mean = (ops.weight(f"{name}.{p}", (filters,), 0.1) for p in ("beta", "mean"))
    return ops.batch_norm(x, gamma, beta, mean, var)


def _classify(ops, x, channels):
    weight = ops.weight("classifier.weight", (1000, channels))
    return ops.linear(ops.global_average(x), weight, ops.weight("classifier.bias", (1000,), 0.1))


def _resnet(ops, image, stages, is_deep):
    x = ops.relu(_conv_norm(ops, image, "stem", 3, 64, 7, 2))
    x = ops.max_pool(x, 3, 2, 1)
    channels, expansion = 64, 4 if is_deep else 1
    for stage, blocks in enumerate(stages):
        width = 64 << stage
        for block in range(blocks):
            name, stride = f"stage{stage}.{block}", 2 if stage > 0 and block == 0 else 1
            kernels = [(1, 1), (3, stride), (1, 1)] if is_deep else [(3, stride), (3, 1)]
            y, inside = x, channels
            for i, (kernel, step) in enumerate(kernels):
                is_last = i == len(kernels) - 1
                filters = width * expansion if is_last else width
                y = _conv_norm(ops, y, f"{name}.conv{i}", inside, filters, kernel, step)
                y, inside = y if is_last else ops.relu(y), filters
            if channels != inside:
                x = _conv_norm(ops, x, f"{name}.down", channels, inside, 1, stride)
            x, channels = ops.relu(ops.add(y, x)), inside
    return [_classify(ops, x, channels)]


def resnet18(ops, image):
    return _resnet(ops, image, (2, 2, 2, 2), is_deep=False)


def resnet50(ops, image):
    return _resnet(ops, image, (3, 4, 6, 3), is_deep=True)


def mobilenet_v2(ops, image):
    x, channels = ops.relu6(_conv_norm(ops, image, "stem", 3, 32, 3, 2)), 32
    rows = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)]
    rows += [(6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for row, (expansion, filters, repeats, first_stride) in enumerate(rows):
        for i in range(repeats):
            name, stride = f"block{row}.{i}", first_stride if i == 0 else 1
            y, inside = x, channels * expansion
            if expansion > 1:
                y = ops.relu6(_conv_norm(ops, y, f"{name}.expand", channels, inside, 1))
            y = _conv_norm(ops, y, f"{name}.depthwise", inside, inside, 3, stride, inside)
            y = _conv_norm(ops, ops.relu6(y), f"{name}.project", inside, filters, 1)
            x = ops.add(x, y) if stride == 1 and channels == filters else y
            channels = filters
    x = ops.relu6(_conv_norm(ops, x, "head", channels, 1280, 1))
    return [_classify(ops, x, 1280)]


# ---- transformers --------------------------------------------------------------------------------
def _linear(ops, x, name, inputs, outputs):
    weight = ops.weight(f"{name}.weight", (outputs, inputs), 0.5 / math.sqrt(inputs))
    return ops.linear(x, weight, ops.weight(f"{name}.bias", (outputs,), 0.1))


def _layer_norm(ops, x, name, size, epsilon):
    gamma = ops.weight(f"{name}.gamma", (size,), 0.05, 1.0)
    return ops.layer_norm(x, gamma, ops.weight(f"{name}.beta", (size,), 0.1), epsilon)


HEADS, HEAD_SIZE = 12, 64


def _heads(ops, x, batch, tokens):
    return ops.transpose(ops.reshape(x, (batch, tokens, HEADS, HEAD_SIZE)), (0, 2, 1, 3))


def _attend(ops, q, k, v, batch, tokens, bias):
    scores = ops.scale(ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))), 1 / math.sqrt(HEAD_SIZE))
    out = ops.matmul(ops.softmax(scores if bias is None else ops.add(scores, bias)), v)
    return ops.reshape(ops.transpose(out, (0, 2, 1, 3)), (batch, tokens, HEADS * HEAD_SIZE))


def bert_base(ops, ids, types, mask):
    (batch, tokens), hidden = ops.shape(ids), 768
    x = ops.embedding(ids, ops.weight("embedding.words", (30522, hidden), 0.05))
    x = ops.add(x, ops.embedding(types, ops.weight("embedding.types", (2, hidden), 0.05)))
    positions = ops.weight("embedding.positions", (512, hidden), 0.05)
    x = ops.add(x, ops.cut(positions, 0, 0, tokens))
    x = _layer_norm(ops, x, "norm", hidden, 1e-12)
    bias = ops.scale(ops.shift(ops.reshape(mask, (batch, 1, 1, tokens)), -1.0), 10000.0)
    for i in range(12):
        q, k, v = (
            _heads(ops, _linear(ops, x, f"{i}.{n}", hidden, hidden), batch, tokens) for n in "qkv"
        )
        y = _attend(ops, q, k, v, batch, tokens, bias)
        y = _linear(ops, y, f"{i}.out", hidden, hidden)
        x = _layer_norm(ops, ops.add(x, y), f"{i}.norm0", hidden, 1e-12)
        y = ops.gelu(_linear(ops, x, f"{i}.up", hidden, 4 * hidden))
        y = _linear(ops, y, f"{i}.down", 4 * hidden, hidden)
        x = _layer_norm(ops, ops.add(x, y), f"{i}.norm1", hidden, 1e-12)
    first = ops.reshape(ops.cut(x, 1, 0, 1), (batch, hidden))
    return [x, ops.tanh(_linear(ops, first, "pooler", hidden, hidden))]


def _gpt2(ops, ids, past):
    """Earlier tokens are in `past`, two tensors per layer. Gives the logits of the last token, and
    the tensors of the next call."""
    (batch, tokens), hidden, vocabulary, most = ops.shape(ids), 768, 50257, 1024
    before = ops.shape(past[0])[2] if past else 0
    words = ops.weight("embedding.words", (vocabulary, hidden), 0.05)
    positions = ops.weight("embedding.positions", (most, hidden), 0.05)
    x = ops.add(ops.embedding(ids, words), ops.cut(positions, 0, before, before + tokens))
    bias = None
    if not past:  # else there is one new token, which sees all
        bias = ops.constant(np.triu(np.full((most, most), -1e9, np.float32), 1))
        bias = ops.cut(ops.cut(bias, 0, 0, tokens), 1, 0, tokens)
    present = []
    for i in range(12):
        y = _layer_norm(ops, x, f"{i}.norm0", hidden, 1e-5)
        q, k, v = (
            _heads(ops, _linear(ops, y, f"{i}.{n}", hidden, hidden), batch, tokens) for n in "qkv"
        )
        if past:
            k, v = ops.concat((past[2 * i], k), 2), ops.concat((past[2 * i + 1], v), 2)
        present += [k, v]
        y = _attend(ops, q, k, v, batch, tokens, bias)
        x = ops.add(x, _linear(ops, y, f"{i}.out", hidden, hidden))
        y = _layer_norm(ops, x, f"{i}.norm1", hidden, 1e-5)
        y = ops.gelu_tanh(_linear(ops, y, f"{i}.up", hidden, 4 * hidden))
        x = ops.add(x, _linear(ops, y, f"{i}.down", 4 * hidden, hidden))
    last = ops.reshape(ops.cut(x, 1, tokens - 1, tokens), (batch, hidden))
    return [ops.linear(_layer_norm(ops, last, "norm", hidden, 1e-5), words, None), *present]


def gpt2_prefill(ops, ids):
    return _gpt2(ops, ids, ())


def gpt2_decode(ops, ids, *past):
    return _gpt2(ops, ids, past)


def mlp(ops, x):
    for i, (inputs, outputs) in enumerate(((784, 1024), (1024, 1024), (1024, 10))):
        x = _linear(ops, x, f"layer{i}", inputs, outputs)
        x = ops.relu(x) if outputs != 10 else x
    return [x]


# ---- models --------------------------------------------------------------------------------------
# Dimensions that may be any have a name; DIMS is what they are where nothing else is said.
DIMS = {"n": 1, "bert": 128, "prompt": 64, "before": 64}
IMAGE = {"image": ("float32", ("n", 3, 224, 224))}
TOKENS = ("int64", ("n", "bert"))
MODELS = {
    "resnet18": (resnet18, IMAGE),
    "resnet50": (resnet50, IMAGE),
    "mobilenet_v2": (mobilenet_v2, IMAGE),
    "bert_base": (bert_base, {"ids": TOKENS, "types": TOKENS, "mask": ("float32", ("n", "bert"))}),
    "gpt2_prefill": (gpt2_prefill, {"ids": ("int64", ("n", "prompt"))}),
    "gpt2_decode": (
        gpt2_decode,
        {"ids": ("int64", ("n", 1))}
        | {f"past{i}": ("float32", ("n", HEADS, "before", HEAD_SIZE)) for i in range(24)},
    ),
    "mlp": (mlp, {"x": ("float32", ("n", 784))}),
}
LARGEST = {"ids": 10000, "types": 2}  # integers are below it


@dataclasses.dataclass
class Model:
    name: str
    seed: int = 0
    dims: dict = dataclasses.field(default_factory=lambda: DIMS)  # {} leaves them symbolic
    dtype: str = "float32"  # of weights and of what is computed
    definition: tuple | None = None  # (function, signature) of what is none of MODELS

    def __post_init__(self):
        self.run, signature = self.definition or MODELS[self.name]
        signature = {
            name: (self.dtype if dtype == "float32" else dtype, shape)
            for name, (dtype, shape) in signature.items()
        }
        self.signature = self._with(signature, self.dims)
        self.weights = Weights(self.seed)

    @staticmethod
    def _with(signature, dims):
        return {
            name: (dtype, tuple(dims.get(dim, dim) for dim in shape))
            for name, (dtype, shape) in signature.items()
        }

    def inputs(self, **dims):
        rng = np.random.default_rng(self.seed)
        return [
            rng.integers(0, LARGEST[name], shape)
            if dtype == "int64"
            else np.ones(shape, dtype)
            if name == "mask"
            else rng.standard_normal(shape, np.float32).astype(dtype)
            for name, (dtype, shape) in self._with(self.signature, DIMS | dims).items()
        ]
