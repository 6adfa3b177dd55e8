# SPDX-License-Identifier: Apache-2.0
"""Mutated ONNX files: python -m tests.fuzz.onnx_files --seconds 3600

Every file must be imported or refused with an exception that names a cause; a crash ends the
process, and the last seeds printed are near the one that did it.
"""

import argparse
import random
import time

import numpy as np
import onnx
import tvm
from onnx import TensorProto, helper
from tvm.relax.frontend.onnx import from_onnx

# What bad files may raise; MemoryError for sizes that do not fit.
EXPECTED = (ValueError, TypeError, IndexError, RecursionError, MemoryError, OSError, tvm.TVMError)


def _node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def _model(nodes, weights, functions=(), x=None):
    tensors = [onnx.numpy_helper.from_array(a, n) for n, a in weights.items()]
    x = x or helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    domains = (("", 21), ("f", 1), ("ai.onnx.ml", 3), ("com.microsoft", 1))
    opsets = [helper.make_opsetid(*o) for o in domains]
    proto = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)
    return proto.SerializeToString()


def _packed_seeds(rng):
    """Weights of a few bits, 8-bit attention and steps, experts, maps."""

    def ours(op, inputs, **attributes):
        return helper.make_node(op, inputs.split(" "), ["y"], domain="com.microsoft", **attributes)

    def by_rows(node, **weights):
        rows = {"rows": np.array([-1, 32]), "steps": np.array([-1, 2, 32])}
        shaped = [_node("Reshape", "x rows", "h"), _node("Reshape", "x steps", "t")]
        quantised = [_node("DynamicQuantizeLinear", "t", "q qs qz")]
        return _model([*shaped, *quantised, node], rows | weights)

    def u8(*shape):
        return rng.integers(0, 256, shape).astype("uint8")

    def f32(*shape):
        return rng.random(shape, "float32")

    table = helper.make_value_info("x", onnx.TypeProto())
    table.type.map_type.key_type = TensorProto.INT64
    table.type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    vocabulary = {"domain": "ai.onnx.ml", "int64_vocabulary": [4, 2]}
    sparse = {"domain": "ai.onnx.ml", "map_form": "SPARSE", "max_map": 4}
    experts = {"e": f32(3, 8, 32), "g": f32(3, 32, 8)}
    lstm = {"w": u8(1, 32, 16), "r": u8(1, 4, 16), "s": f32(1), "z": u8(1)}
    return [
        by_rows(ours("MatMulNBits", "h w s z", K=32, N=4, bits=4, block_size=16),
                w=u8(4, 2, 8), s=f32(8), z=u8(4)),
        by_rows(ours("MatMulBnb4", "h w s", K=32, N=4, block_size=16, quant_type=1),
                w=u8(64), s=f32(8)),
        by_rows(ours("GatherBlockQuantized", "w i s", block_size=16, quantize_axis=1),
                w=u8(4, 16), i=np.array([1, 3]), s=f32(4, 2)),
        by_rows(ours("QAttention", "q w b qs s  qz z", num_heads=2),
                w=u8(32, 24), b=f32(24), s=f32(24), z=u8(24)),
        by_rows(ours("DynamicQuantizeLSTM", "t w r      s z s z", hidden_size=4), **lstm),
        by_rows(ours("MoE", "h p e  g", k=2, activation_type="gelu"), p=f32(6, 3), **experts),
        by_rows(ours("QMoE", "h p e s  g t2", k=2), p=f32(6, 3), e=u8(3, 8, 16), s=f32(3, 8),
                g=u8(3, 32, 4), t2=f32(3, 32)),
        _model([_node("DictVectorizer", "x", "y", **vocabulary)], {}, x=table),
        _model([_node("CastMap", "x", "y", **sparse)], {}, x=table),
    ]  # fmt: skip


def seeds():
    """Models that use most kinds of messages."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.random((4, 3, 3, 3), "float32"), "b": rng.random(4, "float32")}
    weights |= {"to": np.array([0, -1]), "c": np.array(True), "m": np.array(3)}
    conv = _node("Conv", "x w b", "h", pads=[1, 1, 1, 1], strides=[2, 2])
    shapes = [
        _node("Shape", "h", "s"),
        _node("Slice", "s m m", "t"),
        _node("Reshape", "h to", "y"),
    ]
    branch = helper.make_graph(
        [_node("Neg", "h", "r")], "b", [], [helper.make_tensor_value_info("r", 1, None)]
    )
    choice = _node("If", "c", "y", then_branch=branch, else_branch=branch)
    function = helper.make_function(
        "f", "twice", ["a"], ["b"], [_node("Add", "a a", "b")], [helper.make_opsetid("", 21)]
    )
    body = helper.make_graph(
        [_node("Identity", "go", "on"), _node("SequenceInsert", "q x", "r")],
        "b",
        [helper.make_tensor_value_info(*v) for v in (("i", 7, []), ("go", 9, []))]
        + [helper.make_tensor_sequence_value_info("q", 1, None)],
        [helper.make_tensor_value_info("on", 9, [])]
        + [helper.make_tensor_sequence_value_info("r", 1, None)],
    )
    sequences = [
        _node("SequenceConstruct", "x x", "q0"),
        _node("SequenceErase", "q0", "q1"),
        helper.make_node("Loop", ["m", "", "q1"], ["q2"], body=body),
        _node("ConcatFromSequence", "q2", "y", axis=1),
    ]
    strings = [
        _node("Constant", "", "words", value_strings=["ab", "c-d", ""]),
        _node("StringConcat", "words words", "twice"),
        _node("StringSplit", "twice", "parts counts", delimiter="-"),
        _node("RegexFullMatch", "twice", "full", pattern="(a|b)+"),
        _node("LabelEncoder", "parts", "y", domain="ai.onnx.ml", keys_strings=["ab", "c"],
              values_floats=[1.0, 2.0], default_float=0.5),
    ]  # fmt: skip
    tree = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "n_targets": 1,
        "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
    }  # fmt: skip
    learned = [
        _node("Reshape", "x rows", "h"),
        _node("Scaler", "h", "i", domain="ai.onnx.ml", offset=[0.5], scale=[2.0]),
        _node("TreeEnsembleRegressor", "i", "y", domain="ai.onnx.ml", **tree),
    ]
    quantised = [
        _node("DynamicQuantizeLinear", "x", "q s z"),
        _node("ConvInteger", "q k z", "h", pads=[1, 1, 1, 1]),
        _node("DequantizeLinear", "h s", "y"),
    ]
    weights |= {"rows": np.array([-1, 4]), "k": rng.integers(0, 9, (2, 3, 3, 3)).astype("uint8")}
    return [
        *_packed_seeds(rng),
        _model(sequences, weights),
        _model(strings, weights),
        _model(learned, weights),
        _model(quantised, weights),
        _model([conv, *shapes], weights),
        _model([conv, choice], weights),
        _model([conv, _node("twice", "h", "y", domain="f")], weights, [function]),
    ]


def mutate(rng, data, others):
    """A few changes of bytes: flips, cuts, copies, parts of other files."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif kind == 2:
            del data[at : at + rng.randint(1, 8)]
        elif kind == 3:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 8)))
        elif kind == 4:
            other = rng.choice(others)
            begin = rng.randrange(len(other))
            data[at:at] = other[begin : begin + rng.randint(1, 64)]
        else:
            del data[at:]
        if not data:
            data = bytearray(b"\0")
    return bytes(data)


def check(seed, files):
    """None, or what is wrong with the answer to a mutated file."""
    rng = random.Random(seed)
    try:
        from_onnx(mutate(rng, rng.choice(files), files))
    except EXPECTED as error:
        return None if str(error) else f"seed {seed}: no message"
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}"
    return None


def main(description, check):
    """Mutated files; `check(seed)` says what is wrong with one."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--programs", type=int, help="how many; else as many as the time allows")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    seed, end = args.seed, time.time() + args.seconds
    while time.time() < end if args.programs is None else seed < args.seed + args.programs:
        if seed % 1000 == 0:
            print(f"seed {seed}", flush=True)
        if complaint := check(seed):
            raise SystemExit(complaint)
        seed += 1
    print(f"{seed - args.seed} files")


if __name__ == "__main__":
    files = seeds()
    main(__doc__, lambda seed: check(seed, files))
