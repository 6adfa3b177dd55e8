# SPDX-License-Identifier: Apache-2.0
"""What only running tells: operands that are data, branches, loops; compared with ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
import tvm
from onnx import TensorProto, helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from .models import FLOAT, INT64, model, node, value

BOOL = TensorProto.BOOL


def f32(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype("float32")


def ints(*values):
    return np.array(values, "int64")


def check(proto, *data_sets):
    """Compiles once and compares for several inputs, by name."""
    mod = from_onnx(proto)
    assert relax.analysis.well_formed(mod)
    vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    for output in proto.graph.output:
        output.ClearField("type")  # ONNX Runtime infers it
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for arrays in data_sets:
        expected = session.run(None, arrays)
        got = vm["main"](*[tvm.runtime.tensor(a) for a in arrays.values()])
        got = [got] if len(expected) == 1 else list(got)
        for a, b in zip(got, expected, strict=True):
            assert a.numpy().dtype == b.dtype
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-5, atol=1e-6)


def one(op, inputs, outputs="y", weights=None, opset=21, **attributes):
    """A model of one node: inputs are (name, shape, dtype)."""
    names = " ".join([*(i[0] for i in inputs), *(weights or {})])
    made = node(op, names, outputs, **attributes)
    infos = [value(*i) for i in inputs]
    return model([made], infos, [value(o, None) for o in outputs.split()], weights, opset)


X = ("x", ("n", 6))


def test_reshape_by_data():
    proto = one("Reshape", [X, ("s", (2,), INT64)])
    check(
        proto,
        {"x": f32(2, 6), "s": ints(3, 4)},
        {"x": f32(4, 6), "s": ints(-1, 8)},
        {"x": f32(4, 6), "s": ints(0, -1)},
    )


def test_slice_by_data():
    names = [("a", (1,), INT64), ("b", (1,), INT64), ("c", (1,), INT64), ("d", (1,), INT64)]
    proto = one("Slice", [X, *names])
    for start, end, axis, step in ((1, 3, 0, 1), (-2, 100, 1, 1), (-1, -7, 1, -2), (3, 1, 0, 1)):
        arrays = {"x": f32(4, 6), "a": ints(start), "b": ints(end), "c": ints(axis)}
        check(proto, arrays | {"d": ints(step)})


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceLogSumExp"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes_that_are_data(op, keepdims):
    proto = one(op, [("x", ("n", 3, 4)), ("a", (2,), INT64)], keepdims=keepdims)
    x = f32(2, 3, 4)
    check(proto, *[{"x": x, "a": ints(*axes)} for axes in ((0, 1), (2, 0), (-1, 1))])


def test_expand_and_tile_by_data():
    for op, shapes in (("Expand", ((2, 1), (1, 6), (3, 6))), ("Tile", ((1, 2), (3, 1), (0, 1)))):
        proto = one(op, [("x", ("n", 6)), ("s", (2,), INT64)])
        for shape in shapes:
            check(proto, {"x": f32(1, 6), "s": ints(*shape)})


def test_pad_by_data():
    proto = one("Pad", [X, ("p", (4,), INT64)], mode="reflect")
    check(proto, {"x": f32(3, 6), "p": ints(1, 2, 0, 3)}, {"x": f32(4, 6), "p": ints(0, 0, 0, 0)})


def test_range():
    inputs = [("a", (), INT64), ("b", (), INT64), ("c", (), INT64)]
    numbers = ((0, 5, 1), (7, 0, -3), (3, 3, 1))
    sets = [{k: np.array(v) for k, v in zip("abc", n, strict=True)} for n in numbers]
    check(one("Range", inputs), *sets)


def test_nonzero_and_what_follows():
    nodes = [
        node("Greater", "x zero", "m"),
        node("NonZero", "m", "i"),
        node("Transpose", "i", "t"),
        node("GatherND", "x t", "v"),
        node("Shape", "v", "s"),
        node("ReduceSum", "v", "y", keepdims=0),
    ]
    outputs = [value("v", None), value("s", None, INT64), value("y", None)]
    proto = model(nodes, [value(*X)], outputs, {"zero": np.array(0, "float32")})
    check(proto, {"x": f32(2, 6)}, {"x": f32(5, 6)}, {"x": -np.abs(f32(2, 6))})


def test_topk_and_one_hot_by_data():
    check(one("TopK", [X, ("k", (1,), INT64)], "y z"), {"x": f32(3, 6), "k": ints(2)})
    proto = one("OneHot", [("i", ("n",), INT64), ("d", (), INT64), ("v", (2,))])
    check(proto, {"i": ints(0, 2, -1, 9), "d": np.array(4), "v": np.float32([5, 7])})


# ---- control flow -------------------------------------------------------------------------------
def graph(nodes, inputs, outputs, weights=None):
    return helper.make_graph(
        nodes, "body", inputs, outputs,
        [helper.make_tensor(n, INT64, a.shape, a.flatten()) for n, a in (weights or {}).items()],
    )  # fmt: skip


def test_if():
    yes = graph([node("Mul", "x x", "a")], [], [value("a", None)])
    no = graph([node("Concat", "x x", "b", axis=0)], [], [value("b", None)])
    made = node("If", "c", "r", then_branch=yes, else_branch=no)
    proto = model(
        [made, node("Neg", "r", "y")], [value("c", (), BOOL), value(*X)], [value("y", None)]
    )
    check(proto, {"c": np.array(True), "x": f32(2, 6)}, {"c": np.array(False), "x": f32(3, 6)})


def branches(cond, yes, no, out):
    """An If whose branches are one node each."""
    made = [graph([b], [], [value(b.output[0], None)]) for b in (yes, no)]
    return node("If", cond, out, then_branch=made[0], else_branch=made[1])


def flags(*names):
    return [value(n, (), BOOL) for n in names]


def test_branches_of_different_rank():
    """What follows is imported once for each of them; a result of the program may have any rank."""
    chosen = branches("c", node("Transpose", "x", "a"), node("Flatten", "w", "b", axis=0), "r")
    flat = branches("c", node("ReduceMax", "x", "d"), node("Reshape", "x all", "e"), "f")
    after = [node("Exp", "r", "y"), node("ReduceSum", "f", "z", keepdims=0), node("Neg", "f", "g")]
    proto = model(
        [node("Add", "x x", "w"), chosen, flat, *after],
        [*flags("c"), value(*X)],
        [value(o, None) for o in ("y", "z", "g", "w")],
        {"all": ints(-1)},
    )
    check(proto, {"c": np.array(True), "x": f32(2, 6)}, {"c": np.array(False), "x": f32(3, 6)})


def test_squeeze_of_what_may_be_one():
    """As exporters write it: a later branch of the same condition is known in what follows."""
    nodes, last = (
        [node("Shape", "x", "s"), node("Gather", "s i", "d"), node("Equal", "d i", "c")],
        "x",
    )
    for k in range(12):
        narrow, wide = node("Squeeze", f"{last} i", f"a{k}"), node("Identity", last, f"b{k}")
        back = node("Unsqueeze", f"q{k} i", f"e{k}"), node("Neg", f"q{k}", f"f{k}")
        nodes += [branches("c", narrow, wide, f"q{k}"), branches("c", *back, f"r{k}")]
        last = f"r{k}"
    outputs = [value(last, None), value("q3", None)]
    proto = model(nodes, [value("x", ("n", "k", 3))], outputs, {"i": ints(1)})
    check(proto, {"x": f32(2, 1, 3)}, {"x": f32(2, 4, 3)})
    assert from_onnx(proto).script().count("R.negative") == 12


def test_different_rank_inside_of_a_branch():
    inner = branches("d", node("Transpose", "x", "a"), node("Reshape", "x all", "b"), "q")
    other = branches("d", node("ReduceMax", "x", "e", keepdims=0), node("Abs", "x", "f"), "p")
    yes = graph([inner, node("Neg", "q", "r")], [], [value("r", None)])
    no = graph([other], [], [value("p", None)])
    made = node("If", "c", "t", then_branch=yes, else_branch=no)
    proto = model(
        [made, node("Exp", "t", "y"), node("ReduceSum", "t", "z", keepdims=0)],
        [*flags("c", "d"), value(*X)],
        [value("y", None), value("z", None)],
        {"all": ints(-1)},
    )
    sets = [
        {"c": np.array(c), "d": np.array(d), "x": f32(3, 6)}
        for c in (False, True)
        for d in (False, True)
    ]
    check(proto, *sets)


def test_different_rank_in_a_loop_is_refused():
    chosen = branches("k", node("Transpose", "s", "a"), node("Reshape", "s all", "b"), "t")
    body = graph(
        [chosen, node("Identity", "go", "on")],
        [value("i", (), INT64), value("go", (), BOOL), value("s", ("n", 6))],
        [value("on", (), BOOL), value("t", None)],
    )
    inputs = [value("m", (), INT64), *flags("c", "k"), value(*X)]
    proto = loop(body, inputs, "y", "m c x", {"all": ints(-1)})
    with pytest.raises(tvm.error.OpNotImplemented, match="different rank in the body of a loop"):
        from_onnx(proto)


def loop(body, inputs, outputs, names, weights=None):
    made = node("Loop", names, outputs, body=body)
    return model([made], inputs, [value(o, None) for o in outputs.split()], weights)


def test_loop_with_a_count_that_is_data():
    """Adds x to a sum, collects the sums."""
    body = graph(
        [node("Add", "s x", "t"), node("Identity", "go", "on"), node("Identity", "t", "k")],
        [value("i", (), INT64), value("go", (), BOOL), value("s", (6,))],
        [value("on", (), BOOL), value("t", (6,)), value("k", (6,))],
    )
    inputs = [value("m", (), INT64), value("x", (6,)), value("s0", (6,))]
    proto = loop(body, inputs, "y z", "m c s0", {"c": np.array(True)})
    sets = [{"m": np.array(m), "x": f32(6), "s0": f32(6)} for m in (1, 3, 100)]
    check(proto, *sets)


def test_loop_until():
    """Doubles until the sum is large."""
    body = graph(
        [node("Add", "s s", "t"), node("ReduceSum", "t", "n", keepdims=0),
         node("Less", "n limit", "on")],
        [value("i", (), INT64), value("go", (), BOOL), value("s", (4,))],
        [value("on", (), BOOL), value("t", (4,))],
    )  # fmt: skip
    inputs = [value("limit", ()), value("c", (), BOOL), value("s0", (4,))]
    made = helper.make_node("Loop", ["", "c", "s0"], ["y"], body=body)
    proto = model([made], inputs, [value("y", None)])
    start = {"c": np.array(True), "s0": np.ones(4, "float32")}
    check(proto, *[{"limit": np.array(v, "float32")} | start for v in (1, 50, 3000)])


def test_loop_whose_value_grows():
    body = graph(
        [node("Concat", "s x", "t", axis=0), node("Identity", "go", "on")],
        [value("i", (), INT64), value("go", (), BOOL), value("s", (None, 6))],
        [value("on", (), BOOL), value("t", (None, 6))],
    )
    inputs = [value("m", (), INT64), value("c", (), BOOL), value("s0", (1, 6)), value(*X)]
    proto = loop(body, inputs, "y", "m c s0")
    sets = [
        {"m": np.array(m), "c": np.array(True), "s0": f32(1, 6), "x": f32(2, 6)} for m in (0, 1, 4)
    ]
    check(proto, *sets)


def test_scan_of_a_length_that_is_data():
    body = graph(
        [node("Add", "s e", "t"), node("Mul", "t t", "q")],
        [value("s", (6,)), value("e", (6,))],
        [value("t", (6,)), value("q", (6,))],
    )
    made = node("Scan", "s0 x", "y z", body=body, num_scan_inputs=1)
    proto = model([made], [value("s0", (6,)), value(*X)], [value("y", None), value("z", None)])
    check(proto, {"s0": f32(6), "x": f32(3, 6)}, {"s0": f32(6), "x": f32(80, 6)})


FAR = np.iinfo("int64").max


def unknown(op, rank, inputs, **attributes):
    """A model of one node whose vectors have lengths that only running tells, and a result of a
    known rank."""
    infos = [value(name, shape, dtype) for name, shape, dtype in inputs]
    made = node(op, " ".join(i[0] for i in inputs), "y", **attributes)
    return model([made], infos, [value("y", [None] * rank)])


def test_slice_of_unknown_count():
    names = [("s", ("a",), INT64), ("e", ("b",), INT64), ("d", ("c",), INT64), ("t", ("f",), INT64)]
    proto = unknown("Slice", 2, [("x", ("n", "m"), FLOAT), *names])
    check(
        proto,
        {"x": f32(5, 6), "s": ints(1), "e": ints(FAR), "d": ints(-1), "t": ints(2)},
        {"x": f32(5, 6), "s": ints(-1, 0), "e": ints(-FAR, 4), "d": ints(0, 1), "t": ints(-2, 1)},
    )
    proto = unknown("Slice", 2, [("x", ("n", "m"), FLOAT), *names[:2]])
    check(
        proto,
        {"x": f32(5, 6), "s": ints(1), "e": ints(3)},
        {"x": f32(5, 6), "s": ints(1, 2), "e": ints(3, FAR)},
    )


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceLogSumExp"])
def test_reduction_of_unknown_count(op):
    inputs = [("x", ("n", "m", 4), FLOAT), ("a", ("k",), INT64)]
    data = [{"x": f32(2, 3, 4), "a": a} for a in (ints(1), ints(-1, 0), ints())]
    check(unknown(op, 3, inputs), *data)
    check(unknown(op, 1, inputs, keepdims=0), data[1])


def test_axes_of_unknown_count():
    x = ("x", ("n", "m", "k"), FLOAT)
    check(unknown("Squeeze", 2, [x, ("a", ("i",), INT64)]), {"x": f32(2, 1, 3), "a": ints(1)})
    check(unknown("Unsqueeze", 4, [x, ("a", ("i",), INT64)]), {"x": f32(2, 1, 3), "a": ints(-2)})


def test_shapes_of_unknown_length():
    x = ("x", ("n", "m"), FLOAT)
    shape = ("s", ("k",), INT64)
    data = {"x": f32(2, 6)}
    check(unknown("Reshape", 3, [x, shape]), data | {"s": ints(3, -1, 2)})
    check(unknown("Expand", 3, [x, shape]), data | {"s": ints(4, 1, 6)})
    check(unknown("Tile", 2, [x, shape]), data | {"s": ints(2, 1)})
    check(unknown("ConstantOfShape", 2, [shape]), {"s": ints(2, 3)})
    check(unknown("Pad", 2, [x, shape]), data | {"s": ints(0, 1, 2, 0)})


def test_length_that_the_model_contradicts():
    proto = unknown("Reshape", 3, [("x", (6,), FLOAT), ("s", ("k",), INT64)])
    vm = relax.VirtualMachine(tvm.compile(from_onnx(proto), target="llvm"), tvm.cpu())
    with pytest.raises(RuntimeError, match="expected 3, got 2"):
        vm["main"](tvm.runtime.tensor(f32(6)), tvm.runtime.tensor(ints(2, 3)))


def test_sizes_computed_from_shapes_are_sizes():
    """An element of a shape is no -1 and no 0 that stands for another dimension."""
    nodes = [
        node("Conv", "x w", "c", strides=[5]),
        node("Shape", "c", "s"),
        node("Reshape", "c s", "r"),
        node("Add", "r c", "y"),
    ]
    weights = {"w": f32(4, 1, 10)}
    proto = model(nodes, [value("x", ("b", 1, "n"))], [value("y", None)], weights)
    mod = from_onnx(proto)
    assert "Select" not in mod.script() and "match_cast" not in mod.script()
    check(proto, {"x": f32(2, 1, 100)}, {"x": f32(1, 1, 47)})


RECURRENT = {"LSTM": 4, "GRU": 3, "RNN": 1}


@pytest.mark.parametrize("op", RECURRENT)
@pytest.mark.parametrize("with_lengths", [False, True])
def test_sequences_of_any_length(op, with_lengths):
    """One compilation for all lengths and batches, in both directions."""
    size, width, gates = 4, 3, RECURRENT[op]
    rng = np.random.default_rng(gates)
    weights = {
        "w": rng.standard_normal((2, gates * size, width)).astype("float32"),
        "r": rng.standard_normal((2, gates * size, size)).astype("float32") / 2,
        "b": rng.standard_normal((2, 2 * gates * size)).astype("float32"),
    }
    inputs = [value("x", ("t", "n", width))]
    if with_lengths:
        inputs.append(value("lengths", ("n",), TensorProto.INT32))
    names = ["x", "w", "r", "b", "lengths" if with_lengths else ""]
    results = ["y", "h", "c"][: 3 if op == "LSTM" else 2]
    made = helper.make_node(op, names, results, hidden_size=size, direction="bidirectional")
    proto = model([made], inputs, [value(r, None) for r in results], weights)
    data = []
    for steps, batch in ((5, 2), (1, 3), (40, 1)):
        given = {"x": f32(steps, batch, width)}
        if with_lengths:
            given["lengths"] = np.arange(batch, dtype="int32") % steps + 1
        data.append(given)
    check(proto, *data)


def test_long_sequences_are_a_loop():
    weights = {"w": f32(1, 4, 2) / 4, "r": f32(1, 4, 1) / 4}
    made = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=1)
    check(model([made], [value("x", (1000, 1, 2))], [value("y", None)], weights),
          {"x": f32(1000, 1, 2)})  # fmt: skip


def test_attention_of_any_number_of_heads():
    """More heads of queries than of keys, and the size of a head, as running tells."""
    shapes = [("q", ("b", "h", "s", "d")), ("k", ("b", "g", "t", "d")), ("v", ("b", "g", "t", "d"))]
    made = node("Attention", "q k v", "y", is_causal=1)
    proto = model([made], [value(*s) for s in shapes], [value("y", None)], opset=23)
    check(
        proto,
        {"q": f32(2, 4, 5, 8), "k": f32(2, 2, 5, 8), "v": f32(2, 2, 5, 8)},
        {"q": f32(1, 2, 3, 4), "k": f32(1, 2, 3, 4), "v": f32(1, 2, 3, 4)},
    )


@pytest.mark.parametrize("mode", ["floor", "ceil", "round_prefer_floor"])
def test_corners_of_a_size_that_was_asked_for(mode):
    """The last place is exact, however the quotient of the sizes rounds."""
    proto = one(
        "Resize", [("x", ("n",))], weights=None, mode="nearest", nearest_mode=mode,
        coordinate_transformation_mode="align_corners",
    )  # fmt: skip
    proto.graph.node[0].input.extend(["", "", "size"])
    proto.graph.initializer.append(helper.make_tensor("size", INT64, [1], [7]))
    check(proto, *[{"x": np.arange(n, dtype="float32")} for n in (4, 13, 19, 25)])


def test_reduction_over_nothing():
    """An axis of no elements, which only running names."""
    proto = unknown("ReduceSum", 3, [("x", ("n", "m", 4), FLOAT), ("a", ("k",), INT64)])
    check(proto, {"x": f32(2, 0, 4), "a": ints(1)}, {"x": f32(2, 3, 4), "a": ints(1)})


@pytest.mark.parametrize("sizes", [(3, 3), (3, 1), (1, 3)])
def test_batches_that_only_running_compares(sizes):
    proto = model(
        [node("MatMul", "x y", "z")], [value("x", ("a", 2, 4)), value("y", ("b", 4, 5))],
        [value("z", None)],
    )  # fmt: skip
    check(proto, {"x": f32(sizes[0], 2, 4), "y": f32(sizes[1], 4, 5)})


@pytest.mark.parametrize("size", [1, 3, 9])
def test_determinants_of_any_size(size):
    """Rows change places where a pivot is 0; a matrix without an inverse gives 0."""
    proto = model([node("Det", "x", "y")], [value("x", ("b", "n", "n"))], [value("y", ("b",))])
    x = np.random.default_rng(size).standard_normal((3, size, size)).astype("float32")
    x[0, 0, 0] = 0
    x[1] = 0
    vm = relax.VirtualMachine(tvm.compile(from_onnx(proto), target="llvm"), tvm.cpu())
    expected = np.linalg.det(x.astype("float64"))
    np.testing.assert_allclose(vm["main"](x).numpy(), expected, rtol=1e-4, atol=1e-6)
