# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft and quantised ones give what ONNX Runtime gives."""

import numpy as np
import onnxruntime
import pytest
import tvm
from onnx import helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from .models import model, value

DOMAIN = helper.make_opsetid("com.microsoft", 1)


def f32(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def u8(*shape):
    return np.random.default_rng(sum(shape)).integers(0, 256, shape).astype("uint8")


def i8(*shape):
    return np.random.default_rng(sum(shape)).integers(-128, 128, shape).astype("int8")


def s(number, dtype="float32"):
    return np.array(number, dtype)


def check(op, arrays, attributes, outputs=1, domain="com.microsoft", weights=(), atol=1e-5):
    """`arrays` by name, in the order of the inputs; "" is an absent one."""
    names = [f"a{i}" if a is not None else "" for i, a in enumerate(arrays)]
    given = {n: a for n, a in zip(names, arrays, strict=True) if n}
    fixed = {f"a{i}": given.pop(f"a{i}") for i in weights}
    inputs = [value(n, a.shape, helper.np_dtype_to_tensor_dtype(a.dtype)) for n, a in given.items()]
    results = [f"y{i}" for i in range(outputs)]
    made = helper.make_node(op, names, results, domain=domain, **attributes)
    proto = model([made], inputs, [value(r, None) for r in results], fixed, opsets=[DOMAIN])
    for output in proto.graph.output:
        output.ClearField("type")
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, given)
    vm = relax.VirtualMachine(tvm.compile(from_onnx(proto), target="llvm"), tvm.cpu())
    got = vm["main"](*[tvm.runtime.tensor(a) for a in given.values()])
    got = [got] if outputs == 1 else list(got)
    for a, b in zip(got, expected, strict=True):
        a = a.numpy()
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=atol)
        else:
            np.testing.assert_array_equal(a, b)


SCALE, ZERO = s(0.05), s(120, "uint8")
A, B = (u8(2, 3, 4, 4), SCALE, ZERO), (u8(2, 3, 4, 4)[::-1].copy(), s(0.03), s(100, "uint8"))
OUT = (s(0.07), s(110, "uint8"))
CASES = [
    ("FastGelu", [f32(2, 8), f32(8)], {}),
    ("BiasGelu", [f32(2, 8), f32(8)], {}),
    ("QuickGelu", [f32(2, 8)], {"alpha": 1.5}),
    ("Gelu", [f32(2, 8)], {}),
    ("FusedMatMul", [f32(2, 5, 3), f32(2, 4, 5)], {"transA": 1, "transB": 1, "alpha": 0.5}),
    ("SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8)[::-1].copy(), f32(8), f32(8), f32(8)],
     {"epsilon": 1e-5}),
    ("SkipSimplifiedLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8)], {"epsilon": 1e-5}),
    ("MultiHeadAttention", [f32(2, 5, 8), f32(2, 6, 8), f32(2, 6, 8)], {"num_heads": 2}),
    ("QLinearAdd", [*A, *B, *OUT], {}),
    ("QLinearMul", [*A, *B, *OUT], {}),
    ("QLinearSigmoid", [*A, s(1 / 256), s(0, "uint8")], {}),
    ("QLinearLeakyRelu", [*A, *OUT], {"alpha": 0.25}),
    ("QLinearGlobalAveragePool", [*A, *OUT], {}),
    ("QLinearConcat", [*OUT, *A, *B], {"axis": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "arrays", "attributes"), CASES, ids=[c[0] for c in CASES])
def test_microsoft(op, arrays, attributes):
    check(op, arrays, attributes)


def angles(length, pairs):
    table = np.arange(length)[:, None] / 10.0 ** np.arange(pairs)
    return np.cos(table).astype("float32"), np.sin(table).astype("float32")


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved):
    arrays = [f32(2, 5, 16), np.array([3], "int64"), *angles(20, 4)]
    check("RotaryEmbedding", arrays, {"interleaved": interleaved, "num_heads": 2})


@pytest.mark.parametrize("past", [0, 4])
def test_group_query_attention(past):
    """Four heads of queries, two of keys; the first tokens, and tokens behind a past."""
    tokens = 1 if past else 3
    cache = [f32(2, 2, past, 16), f32(2, 2, past, 16)[::-1].copy()]
    arrays = [f32(2, tokens, 64), f32(2, tokens, 32), f32(2, tokens, 32) * 2, *cache]
    arrays += [np.full(2, past + tokens - 1, "int32"), np.array(past + tokens, "int32")]
    arrays += angles(20, 8)
    attributes = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}
    check("GroupQueryAttention", arrays, attributes, 3, weights=(7, 8))


def packed(rows, blocks, size, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (rows, blocks, size)).astype("uint8")


@pytest.mark.parametrize("zeros", [False, True])
def test_matmul_nbits(zeros):
    k, rows, block = 64, 6, 32
    arrays = [f32(3, k), packed(rows, k // block, block // 2), np.abs(f32(rows, k // block)) / 10]
    arrays[2] = arrays[2].reshape(-1)
    if zeros:
        arrays.append(packed(rows, 1, 1).reshape(-1))
    attributes = {"K": k, "N": rows, "bits": 4, "block_size": block}
    check("MatMulNBits", arrays, attributes, weights=range(1, len(arrays)), atol=1e-3)


def ids(high, *shape):
    return np.random.default_rng(high).integers(0, high, shape).astype("int32")


FUSED = [
    ("FusedConv", [f32(1, 3, 6, 6), f32(4, 3, 3, 3), f32(4), f32(1, 4, 6, 6)],
     {"pads": [1, 1, 1, 1], "activation": "LeakyRelu", "activation_params": [0.25]}, 1),
    ("FusedGemm", [f32(3, 5), f32(4, 5), f32(4)],
     {"transB": 1, "alpha": 0.5, "activation": "Relu"}, 1),
    ("EmbedLayerNormalization",
     [ids(20, 2, 5), ids(2, 2, 5), f32(20, 8), f32(9, 8), f32(2, 8), f32(8), f32(8),
      np.array([[1, 1, 1, 0, 0], [1] * 5], "int32")], {"epsilon": 1e-5}, 2),
    ("Attention", [f32(2, 5, 8), f32(8, 24), f32(24)], {"num_heads": 2, "unidirectional": 1}, 1),
    ("Attention", [f32(2, 5, 8), f32(8, 24), f32(24), np.array([3, 5], "int32")],
     {"num_heads": 2}, 1),
    ("Attention", [f32(2, 3, 8), f32(8, 24), f32(24), None, f32(2, 2, 2, 4, 4)],
     {"num_heads": 2, "unidirectional": 1}, 2),
    ("DynamicQuantizeMatMul", [f32(5, 16), i8(16, 6) // 2, f32(6) ** 2 / 10], {}, 1),
]  # fmt: skip


@pytest.mark.parametrize(("op", "arrays", "attributes", "outputs"), FUSED)
def test_fused(op, arrays, attributes, outputs):
    check(op, arrays, attributes, outputs)


@pytest.mark.parametrize("zeros", [False, True])
def test_gather_block_quantized(zeros):
    arrays = [u8(6, 16), ids(6, 2, 3), np.abs(f32(6, 2)) + 0.1]
    if zeros:
        arrays.append(u8(6, 1))
    attributes = {"block_size": 16, "quantize_axis": 1, "bits": 4}
    check("GatherBlockQuantized", arrays, attributes, weights=(0, 2, 3)[: len(arrays) - 1])
