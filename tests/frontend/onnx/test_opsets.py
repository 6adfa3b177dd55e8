# SPDX-License-Identifier: Apache-2.0
"""A node of an older opset is imported as what it is called today."""

import numpy as np
import pytest
import tvm
from tvm.relax.frontend.onnx import from_onnx

from .models import model, node, value


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


# operator: (old opset, how it was written), (opset of the change, how it is written)
CHANGES = [
    ("Reshape", (1, {"shape": [6, -1]}), (5, {"a": ints(6, -1)})),
    ("Slice", (1, {"starts": [1], "ends": [3], "axes": [2]}),
     (10, {"a": ints(1), "b": ints(3), "c": ints(2)})),
    ("Clip", (6, {"min": -1.0, "max": 2.0}), (11, {"a": scalar(-1), "b": scalar(2)})),
    ("Pad", (2, {"pads": [0, 0, 1, 1, 0, 0, 2, 2], "value": 3.0}),
     (11, {"a": ints(0, 0, 1, 1, 0, 0, 2, 2), "b": scalar(3)})),
    ("Dropout", (10, {"ratio": 0.5}), (12, {"a": scalar(0.5)})),
    ("Squeeze", (11, {"axes": [0]}), (13, {"a": ints(0)})),
    ("Unsqueeze", (11, {"axes": [0, -1]}), (13, {"a": ints(0, -1)})),
    ("ReduceSum", (11, {"axes": [1, 2], "keepdims": 0}), (13, {"a": ints(1, 2), "keepdims": 0})),
    ("ReduceMean", (13, {"axes": [1, 2]}), (18, {"a": ints(1, 2)})),
    ("ReduceMax", (12, {"axes": [-1]}), (18, {"a": ints(-1)})),
    ("ReduceL2", (11, {"axes": [-1]}), (18, {"a": ints(-1)})),
    ("GridSample", (16, {"mode": "bilinear", "weights": {"g": np.zeros((2, 2, 2, 2), "float32")}}),
     (20, {"mode": "linear", "weights": {"g": np.zeros((2, 2, 2, 2), "float32")}})),
    ("Softmax", (11, {"axis": 3}), (13, {"axis": -1})),
    ("Concat", (1, {}), (4, {"axis": 1})),
    ("Cast", (1, {"to": "INT32"}), (6, {"to": 6})),
    ("Relu", (1, {"consumed_inputs": [0]}), (6, {})),
    ("Gemm", (6, {"broadcast": 1, "weights": {"w": np.zeros((4, 5), "float32"),
                                              "b": f32(1, 2, 3, 4, 5)}, "of": (3, 4)}),
     (7, {"weights": {"w": np.zeros((4, 5), "float32"), "b": f32(1, 2, 3, 4, 5)},
          "of": (3, 4)})),
]  # fmt: skip


def form(op, opset, written):
    """Arrays under letters are inputs that are constants."""
    written = dict(written)
    weights = written.pop("weights", {})
    weights |= {
        k: written.pop(k) for k in list(written) if isinstance(written[k], np.generic | np.ndarray)
    }
    inputs = " ".join(["x", *weights])
    of = written.pop("of", (1, 3, 4, 5) if op == "Squeeze" else (2, 3, 4, 5))
    return imported(op, opset, inputs, weights=weights, of=of, **written)


@pytest.mark.parametrize(("op", "old", "new"), CHANGES, ids=[c[0] for c in CHANGES])
def test_old_form_is_the_new_one(op, old, new):
    tvm.ir.assert_structural_equal(form(op, *old), form(op, *new))


def test_split_sizes():
    old = imported("Split", 11, outputs="y z", axis=1, split=[1, 2])
    new = imported("Split", 13, "x a", "y z", weights={"a": ints(1, 2)}, axis=1)
    tvm.ir.assert_structural_equal(old, new)


def test_topk_count():
    old = imported("TopK", 1, outputs="y z", axis=1, k=2)
    new = imported("TopK", 10, "x a", "y z", weights={"a": ints(2)}, axis=1)
    tvm.ir.assert_structural_equal(old, new)


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
