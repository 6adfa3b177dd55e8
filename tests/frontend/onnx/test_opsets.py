# SPDX-License-Identifier: Apache-2.0
"""A node of an older opset is imported as what it is called today."""

import functools
import itertools

import numpy as np
import onnx
import pytest
import tvm
from onnx import helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx, supported_operators

from .models import FLOAT, INT64, model, node, value
from .node_cases import cases
from .operators import forms


def imported(op, opset, inputs="x", outputs="y", of=(2, 3, 4, 5), weights=None, **attributes):
    names = outputs.split()
    proto = model(
        [node(op, inputs, outputs, **attributes)], [value("x", of)],
        [value(name, None) for name in names], weights or {}, opset=opset,
    )  # fmt: skip
    return from_onnx(proto)


def ints(*values):
    return np.array(values, "int64")


def f32(*values):
    return np.array(values, "float32")


def scalar(number):
    return np.float32(number).reshape(())


SCALES = f32(1, 1, 2, 2)
NORM = {name: f32(1, 2, 3) for name in "sbmv"}
ROI = {"r": np.array([[0, 0, 2, 2]], "float32"), "i": ints(0)}
FLOOR = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}

# operator: (old opset, how it was written), (opset of the change, how it is written)
CHANGES = [
    ("Reshape", (1, {"shape": [6, -1]}), (5, {"a": ints(6, -1)})),
    ("Slice", (1, {"starts": [1], "ends": [3], "axes": [2]}),
     (10, {"a": ints(1), "b": ints(3), "c": ints(2)})),
    ("Clip", (1, {"min": -1.0, "max": 2.0, "consumed_inputs": [0]}),
     (6, {"min": -1.0, "max": 2.0})),
    ("Clip", (6, {"min": -1.0, "max": 2.0}), (11, {"a": scalar(-1), "b": scalar(2)})),
    ("Pad", (1, {"paddings": [0, 0, 1, 1, 0, 0, 2, 2], "value": 3.0}),
     (2, {"pads": [0, 0, 1, 1, 0, 0, 2, 2], "value": 3.0})),
    ("Pad", (2, {"pads": [0, 0, 1, 1, 0, 0, 2, 2], "value": 3.0}),
     (11, {"a": ints(0, 0, 1, 1, 0, 0, 2, 2), "b": scalar(3)})),
    ("Dropout", (10, {"ratio": 0.5}), (12, {"a": scalar(0.5)})),
    ("Squeeze", (1, {"axes": [0], "of": (1, 3, 4, 5)}), (13, {"a": ints(0), "of": (1, 3, 4, 5)})),
    ("Unsqueeze", (1, {"axes": [0, 2]}), (13, {"a": ints(0, 2)})),
    ("Unsqueeze", (11, {"axes": [0, -1]}), (13, {"a": ints(0, -1)})),
    ("Split", (2, {"axis": 1, "split": [1, 2], "outputs": "y z"}),
     (13, {"axis": 1, "a": ints(1, 2), "outputs": "y z"})),
    ("TopK", (1, {"axis": 1, "k": 2, "outputs": "y z", "kinds": [FLOAT, INT64]}),
     (10, {"axis": 1, "a": ints(2), "outputs": "y z", "kinds": [FLOAT, INT64]})),
    ("ReduceSum", (1, {"axes": [1, 2], "keepdims": 0}), (13, {"a": ints(1, 2), "keepdims": 0})),
    *((f"Reduce{kind}", (1, {"axes": [1, 2]}), (18, {"a": ints(1, 2)}))
      for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")),
    ("GridSample", (16, {"mode": "bilinear", "weights": {"g": np.zeros((2, 2, 2, 2), "float32")}}),
     (20, {"mode": "linear", "weights": {"g": np.zeros((2, 2, 2, 2), "float32")}})),
    *((op, (1, {"axis": 3}), (13, {"axis": -1})) for op in ("Softmax", "LogSoftmax", "Hardmax")),
    ("Concat", (1, {}), (4, {"axis": 1})),
    ("Cast", (1, {"to": "INT32", "kinds": [6]}), (6, {"to": 6, "kinds": [6]})),
    ("Relu", (1, {"consumed_inputs": [0]}), (6, {})),
    ("BatchNormalization", (1, {"consumed_inputs": [0, 0, 0, 1, 1], "is_test": 1, "spatial": 1,
                                "weights": NORM}), (6, {"is_test": 1, "weights": NORM})),
    ("BatchNormalization", (6, {"is_test": 1, "spatial": 1, "weights": NORM}),
     (7, {"weights": NORM})),
    ("BatchNormalization", (7, {"spatial": 1, "weights": NORM}), (9, {"weights": NORM})),
    ("Gemm", (6, {"broadcast": 1, "weights": {"w": np.zeros((4, 5), "float32"),
                                              "b": f32(1, 2, 3, 4, 5)}, "of": (3, 4)}),
     (7, {"weights": {"w": np.zeros((4, 5), "float32"), "b": f32(1, 2, 3, 4, 5)},
          "of": (3, 4)})),
    ("LpPool", (1, {"p": 2.0, "kernel_shape": [2, 2]}), (2, {"p": 2, "kernel_shape": [2, 2]})),
    ("GlobalLpPool", (1, {"p": 2.0}), (2, {"p": 2})),
    ("Tile", (1, {"a": scalar(2), "b": scalar(1)}), (6, {"a": ints(1, 2, 1, 1)})),
    ("Upsample", (1, {"height_scale": 2.0, "width_scale": 2.0}), (7, {"scales": [1.0, 1, 2, 2]})),
    ("Upsample", (7, {"scales": [1.0, 1, 2, 2]}), (9, {"a": SCALES})),
    ("Resize", (10, {"a": SCALES}), (11, {"r": f32(), "a": SCALES, **FLOOR})),
    ("RoiAlign", (10, {"weights": ROI}),
     (16, {"weights": ROI, "coordinate_transformation_mode": "output_half_pixel"})),
    ("MeanVarianceNormalization", (9, {"axes": [0, 2, 3]}), (13, {"axes": [0, 2, 3]})),
    ("DFT", (17, {"axis": 1}), (20, {"inputs": "x  a", "a": np.array(1)})),
]  # fmt: skip
# Forms of which no case of the onnx package is valid before and behind a boundary.
SEEDS = [
    ("DepthToSpace", {"blocksize": 2, "of": (1, 4, 2, 2)}),
    ("MaxRoiPool", {"r": np.array([[0, 0, 0, 2, 2]], "float32"), "pooled_shape": [2, 2]}),
    ("RandomNormal", {"inputs": "", "shape": [2, 3], "seed": 1.0}),
    ("RandomUniform", {"inputs": "", "shape": [2, 3], "seed": 1.0}),
    ("RandomNormalLike", {"seed": 1.0}),
    ("RandomUniformLike", {"seed": 1.0}),
    ("Multinomial", {"seed": 1.0, "sample_size": 2, "of": (2, 5), "kinds": [6]}),
]


def form(op, written, opset=21):
    """The model of a node; arrays under letters are inputs that are constants."""
    written = dict(written)
    weights = written.pop("weights", {})
    weights |= {
        k: written.pop(k) for k in list(written) if isinstance(written[k], np.generic | np.ndarray)
    }
    inputs = written.pop("inputs", " ".join(["x", *weights]))
    outputs = written.pop("outputs", "y").split()
    of, kinds = written.pop("of", (2, 3, 4, 5)), written.pop("kinds", [FLOAT] * len(outputs))
    made = helper.make_node(op, inputs.split(" ") if inputs else [], outputs, **written)
    infos = [value(name, None, kind) for name, kind in zip(outputs, kinds, strict=True)]
    return model([made], [value("x", of)], infos, weights, opset=opset)


@pytest.mark.parametrize(("op", "old", "new"), CHANGES, ids=[f"{c[0]}-{c[2][0]}" for c in CHANGES])
def test_old_form_is_the_new_one(op, old, new):
    before, behind = (from_onnx(form(op, w, opset)) for opset, w in (old, new))
    tvm.ir.assert_structural_equal(before, behind)


# ---- every boundary between two opsets ----------------------------------------------------------
VERSIONS = {op: sorted(found) for op, found in forms()[""].items() if op in supported_operators()}
BOUNDARIES = [(op, a, b) for op, v in VERSIONS.items() for a, b in itertools.pairwise(v)]
# Of Scan the onnx package has results for both forms, which test_nodes compares.
OWN_TESTS = {("Scan", 9), ("PRelu", 6), ("PRelu", 7)}
# What they mean without an axis or with another than the last, along which axis slopes lie and how
# regions are aligned by default changed: CHANGES has what did not.
MEANS_ANOTHER = {(op, 13) for op in ("Softmax", "LogSoftmax", "Hardmax")}
MEANS_ANOTHER |= {("PRelu", 6), ("PRelu", 7), ("RoiAlign", 16)}


def subgraph(text):
    return onnx.parser.parse_graph(text)


def loop_model():
    body = subgraph("b (int64 i, bool go, float[2] h) => (bool on, float[2] r) "
                    "{ on = Identity(go) r = Neg(h) }")  # fmt: skip
    made = helper.make_node("Loop", ["n", "c", "x"], ["y"], body=body)
    return model([made], [value("x", (2,))], [value("y", (2,))],
                 {"n": np.array(3), "c": np.array(True)})  # fmt: skip


def optional_model():
    nodes = [node("Optional", "x", "o"), node("OptionalGetElement", "o", "y")]
    return model(nodes, [value("x", (2,))], [value("y", (2,))])


@functools.cache
def written_forms():
    """{operator: models of one node, and the opsets they may say}, in today's forms and older
    ones."""
    always = range(1, 29)
    found = {"Loop": [(loop_model(), always)], "Optional": [(optional_model(), always)]}
    for op, old, new in CHANGES:
        both = ((old, range(old[0], new[0])), (new, range(new[0], 29)))
        found.setdefault(op, []).extend((form(op, w), opsets) for (_, w), opsets in both)
    for op, written in SEEDS:
        found.setdefault(op, []).append((form(op, written), always))
    by_package = {}
    for case in cases().values():
        nodes = case.model.graph.node if case.model is not None else []
        if len(nodes) == 1 and not nodes[0].domain and not case.model.functions:
            by_package.setdefault(nodes[0].op_type, []).append(case.model)
    # The order of factors in sizes that only running tells is not always the same.
    del by_package["Reshape"]
    for op, models in by_package.items():
        models = sorted(models, key=lambda m: m.ByteSize())
        found.setdefault(op, []).extend((m, always) for m in models)
    return found


def at_opset(proto, opset):
    """The module of a model that says this opset, or None where it is none."""
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    changed.ir_version = 10
    for entry in changed.opset_import:
        if not entry.domain:
            entry.version = opset
    context = onnx.checker.C.CheckerContext()
    context.ir_version, context.opset_imports = 10, {"": opset}
    try:
        for made in changed.graph.node:
            onnx.checker.check_node(made, context)
        onnx.shape_inference.infer_shapes(changed, check_type=True, strict_mode=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return None
    return changed


@pytest.mark.parametrize(("op", "old", "new"), BOUNDARIES)
def test_boundary(op, old, new):
    """What is valid on both sides of a boundary means the same, but where a test of its own says
    otherwise; what is valid on one side alone is in CHANGES."""
    compared = int((op, new) in OWN_TESTS or any(c[0] == op and c[2][0] == new for c in CHANGES))
    for proto, opsets in [] if (op, new) in MEANS_ANOTHER else written_forms().get(op, []):
        if compared == 4:
            break
        if old not in opsets or new not in opsets:
            continue
        pair = [at_opset(proto, opset) for opset in (old, new)]
        if None in pair:
            continue
        before, behind = map(from_onnx, pair)
        tvm.ir.assert_structural_equal(before, behind)
        compared += 1
    assert compared, f"nothing compares {op} before and from opset {new} on"


def test_upsample_is_resize():
    scales = f32(1, 1, 2, 2)
    by_attribute = imported("Upsample", 7, scales=[1.0, 1, 2, 2])
    by_input = imported("Upsample", 9, "x a", weights={"a": scales})
    first = imported("Resize", 10, "x a", weights={"a": scales})
    proto = model(
        [node("Resize", "x  a".replace("  ", " r "), "y",
              coordinate_transformation_mode="asymmetric", nearest_mode="floor")],
        [value("x", (2, 3, 4, 5))], [value("y", None)], {"r": f32(), "a": scales}, opset=19,
    )  # fmt: skip
    newest = from_onnx(proto)
    for mod in (by_attribute, by_input, first):
        tvm.ir.assert_structural_equal(mod, newest)


def test_operands_were_aligned_by_axis():
    """Before opset 7 the second operand began at an axis."""
    w = np.ones(3, "float32")
    old = imported("Add", 6, "x w", weights={"w": w}, broadcast=1, axis=1)
    info = old["main"].ret_struct_info
    assert [int(d) for d in info.shape.values] == [2, 3, 4, 5]
    with pytest.raises(ValueError):
        imported("Add", 7, "x w", weights={"w": w})


def test_slopes_were_along_the_second_axis():
    old = imported("PRelu", 6, "x a", weights={"a": f32(1, 2, 3)})
    first = imported("PRelu", 1, "x a", weights={"a": f32(1, 2, 3)}, consumed_inputs=[0])
    tvm.ir.assert_structural_equal(first, old)
    new = imported("PRelu", 7, "x a", weights={"a": f32(1, 2, 3).reshape(3, 1, 1)})
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype("float32")
    got = [
        relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())["main"](
            tvm.runtime.tensor(x)
        ).numpy()
        for mod in (old, new)
    ]
    np.testing.assert_array_equal(*got)
    np.testing.assert_array_equal(got[0][0, 2], np.where(x[0, 2] < 0, 3 * x[0, 2], x[0, 2]))


def test_softmax_was_over_all_axes_from_one_on():
    mod = imported("Softmax", 11, axis=1)
    names = [b.value.op.name for b in mod["main"].body.blocks[0].bindings if hasattr(b.value, "op")]
    assert names == ["relax.reshape", "relax.nn.softmax", "relax.reshape"]


def test_group_norm_had_a_scale_per_group():
    weights = {"s": f32(1, 2), "b": f32(3, 4)}
    old = imported(
        "GroupNormalization", 18, "x s b", weights=weights, of=(2, 4, 3, 3), num_groups=2
    )
    names = [b.value.op.name for b in old["main"].body.blocks[0].bindings if hasattr(b.value, "op")]
    assert names == ["relax.repeat", "relax.repeat", "relax.nn.group_norm"]
    with pytest.raises(ValueError):
        imported("GroupNormalization", 21, "x s b", weights=weights, of=(2, 4, 3, 3), num_groups=2)
