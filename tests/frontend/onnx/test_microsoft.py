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
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # several of them quantise their shares of a batch apart
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
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


def imported(op, arrays, attributes, domain="com.microsoft"):
    """The results here, of a node that ONNX Runtime has no kernel for."""
    names = [f"a{i}" if a is not None else "" for i, a in enumerate(arrays)]
    given = {n: a for n, a in zip(names, arrays, strict=True) if n}
    inputs = [value(n, a.shape, helper.np_dtype_to_tensor_dtype(a.dtype)) for n, a in given.items()]
    made = helper.make_node(op, names, ["y"], domain=domain, **attributes)
    proto = model([made], inputs, [value("y", None)], opsets=[DOMAIN])
    vm = relax.VirtualMachine(tvm.compile(from_onnx(proto), target="llvm"), tvm.cpu())
    return vm["main"](*[tvm.runtime.tensor(a) for a in given.values()]).numpy()


SCALE, ZERO = s(0.05), s(120, "uint8")
A, B = (u8(2, 3, 4, 4), SCALE, ZERO), (u8(2, 3, 4, 4)[::-1].copy(), s(0.03), s(100, "uint8"))
OUT = (s(0.07), s(110, "uint8"))
CASES = [
    ("FastGelu", [f32(2, 8), f32(8)], {}),
    ("BiasGelu", [f32(2, 8), f32(8)], {}),
    ("QuickGelu", [f32(2, 8)], {"alpha": 1.5}),
    ("Gelu", [f32(2, 8)], {}),
    ("FusedMatMul", [f32(2, 5, 3), f32(2, 4, 5)], {"transA": 1, "transB": 1, "alpha": 0.5}),
    ("FusedMatMul", [f32(5, 2, 3), f32(2, 3, 4)], {"transBatchA": 1}),
    ("FusedMatMul", [f32(3, 2, 5), f32(4, 2, 3)],
     {"transBatchA": 1, "transA": 1, "transBatchB": 1, "transB": 1}),
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


@pytest.mark.parametrize("sink", [None, f32(4)], ids=["0", "given"])
def test_a_score_beside_those_of_keys(sink):
    """Whose weight goes to nothing: smooth_softmax, or one for each head."""
    cache = f32(2, 2, 0, 8)
    lengths, total = np.array([3, 2], "int32"), np.array([4], "int32")
    arrays = [f32(2, 4, 32), f32(2, 4, 16), f32(2, 4, 16), cache, cache, lengths, total]
    attributes = {"num_heads": 4, "kv_num_heads": 2, "smooth_softmax": int(sink is None)}
    if sink is not None:
        arrays += [None, None, None, None, sink]
    check("GroupQueryAttention", arrays, attributes, outputs=3, atol=1e-4)


def packed(rows, blocks, size, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (rows, blocks, size)).astype("uint8")


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("m, k, rows", [(3, 64, 6), (1, 256, 128), (9, 80, 100)])
def test_matmul_nbits(m, k, rows, zeros):
    """Also columns that panels of 64 do not divide, and a last block that is not full."""
    block, blocks = 32, -(-k // 32)
    arrays = [f32(m, k), packed(rows, blocks, block // 2), np.abs(f32(rows, blocks)) / 10]
    arrays[2] = arrays[2].reshape(-1)
    if zeros:
        arrays.append(packed(rows, 1, -(-blocks // 2)).reshape(-1))
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


def test_attention_of_8_bit_numbers():
    arrays = [u8(2, 5, 8), i8(8, 24), f32(24), s(0.02), np.abs(f32(24)) / 50, None,
              s(128, "uint8"), i8(24) // 16, f32(2, 2, 2, 3, 4)]  # fmt: skip
    check("QAttention", arrays[:5] + [np.array([3, 5], "int32")], {"num_heads": 2})
    check("QAttention", arrays, {"num_heads": 2, "unidirectional": 1}, 2, weights=(1, 4, 7))


@pytest.mark.parametrize("quant_type", [0, 1], ids=["fp4", "nf4"])
@pytest.mark.parametrize("rows, columns, block", [(6, 32, 16), (3, 40, 64)])
def test_matmul_bnb4(quant_type, rows, columns, block):
    """Also blocks that rows do not divide."""
    size = rows * columns
    arrays = [f32(2, 3, columns), u8(size // 2), np.abs(f32(-(-size // block)))]
    attributes = {"K": columns, "N": rows, "block_size": block, "quant_type": quant_type}
    check("MatMulBnb4", arrays, attributes, weights=(1, 2))


def test_matmul_bnb4_of_the_weight_as_it_is():
    """x · weight beside x · weightᵀ, whose product with ones along each axis is the weight."""
    packed, most = u8(6 * 32 // 2), np.abs(f32(6 * 32 // 16))
    attributes = {"K": 32, "N": 6, "block_size": 16, "quant_type": 1}
    weight = imported("MatMulBnb4", [np.eye(32, dtype="float32"), packed, most], attributes).T
    x = f32(5, 6)
    got = imported("MatMulBnb4", [x, packed, most], attributes | {"transB": 0})
    np.testing.assert_allclose(got, x @ weight, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("lengths", [None, [3]], ids=["whole", "short"])
def test_dynamic_quantize_lstm(direction, per_channel, lengths):
    """A sequence that is over goes on in ONNX Runtime unseen, and changes the range of a batch:
    the short one is alone."""
    batch, count = 1 if lengths else 2, 1 + (direction == "bidirectional")
    hidden, inputs = 4, 6
    shape = (count, 4 * hidden) if per_channel else (count,)
    number = i8 if per_channel else u8  # signed ones have no zero point in ONNX Runtime
    arrays = [f32(5, batch, inputs), number(count, inputs, 4 * hidden),
              number(count, hidden, 4 * hidden), f32(count, 8 * hidden),
              np.array(lengths, "int32") if lengths else None, f32(count, batch, hidden),
              f32(count, batch, hidden)[::-1].copy(), None]  # fmt: skip
    for seed in (0, 1):
        zeros = np.zeros(shape, "int8") if per_channel else np.full(shape, 120 + seed, "uint8")
        arrays += [np.abs(f32(*shape)) / 100 + 0.001 * seed, zeros]
    attributes = {"hidden_size": hidden, "direction": direction}
    check("DynamicQuantizeLSTM", arrays, attributes, 3, weights=(1, 2, 8, 9, 10, 11))


TOKENS, SIZE, INNER, EXPERTS = 5, 32, 64, 4


def experts(fused=1):
    """Tokens, scores, and two layers with their biases."""
    rows = INNER * fused
    return [f32(TOKENS, SIZE), f32(TOKENS, EXPERTS), f32(EXPERTS, rows, SIZE) / 4,
            f32(EXPERTS, rows), f32(EXPERTS, SIZE, INNER) / 4, f32(EXPERTS, SIZE)]  # fmt: skip


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity", "swiglu"])
@pytest.mark.parametrize("normalize", [0, 1])
def test_mixture_of_experts(activation, normalize):
    arrays = experts(2 if activation == "swiglu" else 1)
    attributes = {"k": 2, "activation_type": activation, "normalize_routing_weights": normalize}
    if activation == "swiglu":
        attributes |= {"swiglu_fusion": 1, "activation_alpha": 1.7, "activation_beta": 1.0,
                       "swiglu_limit": 1.5}  # fmt: skip
    check("MoE", arrays, attributes, atol=1e-4)


def test_mixture_of_experts_by_batches():
    arrays = experts()
    arrays[0] = arrays[0].reshape(1, TOKENS, SIZE)
    check("MoE", arrays, {"k": 1, "activation_type": "silu"}, atol=1e-4)


def test_gate_of_experts_stored_otherwise():
    """The two halves of swiglu interleaved, side by side, and as layers of their own."""
    arrays = experts(2)
    attributes = {"k": 2, "activation_type": "swiglu", "activation_alpha": 1.5}
    expected = imported("MoE", arrays, attributes | {"swiglu_fusion": 1})
    gate, linear = ([a[:, i::2] for a in arrays[2:4]] for i in (0, 1))
    joined = [np.concatenate(pair, 1) for pair in zip(gate, linear, strict=True)]
    beside = imported("MoE", [*arrays[:2], *joined, *arrays[4:]], attributes | {"swiglu_fusion": 2})
    apart = imported("MoE", [*arrays[:2], *gate, *arrays[4:], *linear], attributes)
    np.testing.assert_allclose(beside, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(apart, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_mixture_of_quantised_experts(bits, block, has_zeros):
    def layer(rows, columns):
        groups = (columns // block,) if block else ()
        zeros = (EXPERTS, rows, columns // block) if block else (EXPERTS, rows)
        zeros = (*zeros[:-1], -(-zeros[-1] * bits // 8))
        return (u8(EXPERTS, rows, columns * bits // 8),
                np.abs(f32(EXPERTS, rows, *groups)) / 2**bits, f32(EXPERTS, rows),
                u8(*zeros) if has_zeros else None)  # fmt: skip

    *first, first_zeros = layer(INNER, SIZE)
    *second, second_zeros = layer(SIZE, INNER)
    arrays = [f32(TOKENS, SIZE), f32(TOKENS, EXPERTS), *first, *second, None, None, None]
    arrays += [first_zeros, second_zeros]
    attributes = {"k": 2, "activation_type": "silu", "expert_weight_bits": bits}
    if block:
        attributes["block_size"] = block
    check("QMoE", arrays, attributes, atol=1e-3)
    if has_zeros:
        arrays += [None, np.abs(f32(EXPERTS, TOKENS)).T.copy()]
        check("QMoE", arrays, attributes | {"normalize_routing_weights": 1}, atol=1e-3)


def test_experts_that_there_are_not():
    with pytest.raises(tvm.error.OpError, match=r"k in \[1, 4\], got 5"):
        imported("MoE", experts(), {"k": 5})
    with pytest.raises(tvm.error.OpError, match="activation_type to be .*, got elu"):
        imported("MoE", experts(), {"activation_type": "elu"})


@pytest.mark.parametrize("zeros", [False, True])
def test_gather_block_quantized(zeros):
    arrays = [u8(6, 16), ids(6, 2, 3), np.abs(f32(6, 2)) + 0.1]
    if zeros:
        arrays.append(u8(6, 1))
    attributes = {"block_size": 16, "quantize_axis": 1, "bits": 4}
    check("GatherBlockQuantized", arrays, attributes, weights=(0, 2, 3)[: len(arrays) - 1])


def flags(*rows):
    return np.array(rows, "int32")


JOINED = [f32(2, 5, 16), f32(16, 48), f32(48)]
KEYS = [f32(2, 3, 16), f32(2, 5, 16), f32(2, 5, 16), None]
MASKS = {
    "lengths": np.array([5, 3], "int32"),
    "lengths and starts": np.array([5, 3, 1, 2], "int32"),
    "keys": flags([1, 1, 1, 1, 1], [1, 1, 1, 0, 0]),
    "padding before": flags([1, 1, 1, 1, 1], [0, 0, 1, 1, 1]),
    "nothing": flags([0, 0, 0, 0, 0], [1, 1, 1, 0, 0]),
    "queries": np.random.default_rng(0).integers(0, 2, (2, 5, 5)).astype("int32"),
}


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("mask", MASKS)
def test_masks_of_attention(mask, unidirectional):
    """What is hidden is as low as mask_filter_value, so that queries may see nothing else."""
    attributes = {"num_heads": 4, "unidirectional": unidirectional}
    check("Attention", [*JOINED, MASKS[mask]], attributes, atol=1e-4)


def test_masks_with_a_bias():
    bias = f32(1, 4, 3, 5)
    check("MultiHeadAttention", [*KEYS, MASKS["keys"], bias], {"num_heads": 4}, atol=1e-4)
    check("MultiHeadAttention", [*KEYS, MASKS["lengths"]], {"num_heads": 4}, atol=1e-4)
    attributes = {"num_heads": 4, "unidirectional": 1, "mask_filter_value": -1e6}
    arrays = [*JOINED, MASKS["keys"], None, f32(1, 4, 5, 5)]
    check("Attention", arrays, attributes, atol=1e-4)


def test_values_that_are_wider_than_keys():
    arrays = [f32(2, 5, 16), f32(16, 32), f32(32)]
    check("Attention", arrays, {"num_heads": 4, "qkv_hidden_sizes": [8, 8, 16]}, atol=1e-4)


def test_heads_that_are_side_by_side():
    """Which ONNX Runtime runs on GPUs alone: as those that are apart."""
    q, k, v, bias = *(f32(2, 5, 4, 3 + i)[..., :3] for i in range(3)), f32(36)
    attributes = {"num_heads": 4}
    apart = [t.reshape(2, 5, 12).copy() for t in (q, k, v)]
    want = imported("MultiHeadAttention", [*apart, bias], attributes)
    whole, pair = np.stack([q, k, v], 3), np.stack([k, v], 3)
    got = imported("MultiHeadAttention", [whole, None, None, bias], attributes)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    got = imported("MultiHeadAttention", [apart[0], pair, None, bias], attributes)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
