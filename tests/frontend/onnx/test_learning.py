# SPDX-License-Identifier: Apache-2.0
"""Classifiers, regressors and encoders of ai.onnx.ml, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
import tvm
from onnx import TensorProto, TypeProto, helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from .models import FLOAT, INT64, model, value

RNG = np.random.default_rng(0)
X = RNG.standard_normal((7, 4)).astype("float32")


def check(op, x, outputs, opset=3, dtype=TensorProto.FLOAT, **attributes):
    names = ["y", "z"][: len(outputs)]
    m = model(
        [helper.make_node(op, ["x"], names, domain="ai.onnx.ml", **attributes)],
        [value("x", ("n", *x.shape[1:]), dtype)],
        [value(name, None, kind) for name, kind in zip(names, outputs, strict=True)],
        opsets=[helper.make_opsetid("ai.onnx.ml", opset)],
    )
    expected = onnxruntime.InferenceSession(m.SerializeToString()).run(None, {"x": x})
    vm = relax.VirtualMachine(tvm.compile(from_onnx(m), target="llvm"), tvm.cpu())
    got = vm["main"](tvm.runtime.tensor(x))
    got = [got] if len(names) == 1 else got
    for a, b in zip(got, expected, strict=True):
        a = a.numpy()
        assert a.shape == b.shape
        if b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(a, b)


def forest(trees=3, targets=1, prefix="target", low=-1.0, modes=("BRANCH_LEQ",)):
    """Random trees of depth 2, as attributes."""
    rng = np.random.default_rng(targets)
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                             "falsenodeids", "missing_value_tracks_true")}  # fmt: skip
    leaves = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        for at in range(7):
            inner = at < 3
            row = (tree, at, int(rng.integers(4)) if inner else 0,
                   float(rng.standard_normal()) if inner else 0.0,
                   str(rng.choice(modes)) if inner else "LEAF", 2 * at + 1 if inner else 0,
                   2 * at + 2 if inner else 0, int(rng.integers(2)) if inner else 0)  # fmt: skip
            for key, item in zip(nodes, row, strict=True):
                nodes[key].append(item)
            for target in range(0 if inner else targets):
                weight = float(rng.uniform(low, 1.0))
                for key, item in zip(leaves, (tree, at, target, weight), strict=True):
                    leaves[key].append(item)
    result = {f"nodes_{k}": v for k, v in nodes.items()}
    return result | {f"{prefix}_{k}": v for k, v in leaves.items()}


@pytest.mark.parametrize("join", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressor(join):
    check("TreeEnsembleRegressor", X, [TensorProto.FLOAT], n_targets=2, aggregate_function=join,
          base_values=[0.5, -0.5], **forest(targets=2))  # fmt: skip


def test_tree_modes_and_missing_values():
    x = X.copy()
    x[::2, ::2] = np.nan
    check("TreeEnsembleRegressor", x, [TensorProto.FLOAT], n_targets=1,
          **forest(modes=("BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_NEQ")))  # fmt: skip


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_tree_classifier(post):
    kinds = [TensorProto.STRING, TensorProto.FLOAT]
    check("TreeEnsembleClassifier", X, kinds, classlabels_strings=["a", "b", "c"],
          post_transform=post, **forest(targets=3, prefix="class"))  # fmt: skip


@pytest.mark.parametrize(("post", "low"), [("NONE", 0.0), ("NONE", -1.0), ("LOGISTIC", -1.0)])
def test_tree_classifier_of_two(post, low):
    kinds = [INT64, TensorProto.FLOAT]
    check("TreeEnsembleClassifier", X, kinds, classlabels_int64s=[4, 9], post_transform=post,
          **forest(trees=2, prefix="class", low=low))  # fmt: skip


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_classifier(post):
    coefficients = RNG.standard_normal(12).astype("float32").tolist()
    check("LinearClassifier", X, [INT64, TensorProto.FLOAT], opset=1, classlabels_ints=[3, 1, 2],
          coefficients=coefficients, intercepts=[0.1, 0.2, 0.3], post_transform=post)  # fmt: skip


def test_probit():
    x = np.array([[0.01], [0.1], [0.35], [0.8], [0.99], [0.0], [1.5]], "float32")
    check("LinearRegressor", x, [TensorProto.FLOAT], opset=1, coefficients=[1.0], intercepts=[0.0],
          targets=1, post_transform="PROBIT")  # fmt: skip


def test_one_hot():
    check("OneHotEncoder", np.array([2, 5, 7]), [TensorProto.FLOAT], opset=1, dtype=INT64,
          cats_int64s=[5, 2], zeros=1)  # fmt: skip
    words = np.array(["b", "x", "a"], dtype=object)
    check("OneHotEncoder", words, [TensorProto.FLOAT], opset=1, dtype=TensorProto.STRING,
          cats_strings=["a", "b"], zeros=1)  # fmt: skip


def test_nodes_that_lead_back_are_an_error():
    attributes = forest(trees=1)
    attributes["nodes_truenodeids"][1] = 1
    m = model(
        [helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1,
                          **attributes)],
        [value("x", ("n", 4))], [value("y", None)],
        opsets=[helper.make_opsetid("ai.onnx.ml", 3)],
    )  # fmt: skip
    with pytest.raises(tvm.error.OpError, match="expected trees, got nodes that lead back"):
        from_onnx(m)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kernel):
    rng = np.random.default_rng(3)
    numbers = {"support_vectors": rng.standard_normal(12), "coefficients": rng.standard_normal(3)}
    check("SVMRegressor", X, [TensorProto.FLOAT], opset=1, kernel_type=kernel, n_supports=3,
          kernel_params=[0.5, 0.25, 3.0], rho=[0.1], **numbers)  # fmt: skip


def test_support_vectors_of_one_class():
    check("SVMRegressor", X, [TensorProto.FLOAT], opset=1, kernel_type="LINEAR", n_supports=0,
          coefficients=[0.5, -1.0, 2.0, 0.3], kernel_params=[0.0, 0.0, 0.0], rho=[0.1],
          one_class=1)  # fmt: skip


def svm_classes(count, kernel, odds=False):
    """The attributes of a classifier with two support vectors for each class."""
    rng = np.random.default_rng(count)
    pairs = count * (count - 1) // 2
    made = {
        "kernel_type": kernel,
        "kernel_params": [0.3, 0.1, 2.0],
        "rho": rng.standard_normal(pairs),
        "coefficients": rng.standard_normal(2 * count * (count - 1)),
        "support_vectors": rng.standard_normal(8 * count),
        "vectors_per_class": [2] * count,
    }
    if odds:
        made |= {"prob_a": -rng.random(pairs), "prob_b": rng.standard_normal(pairs)}
    return made


CLASSES = [TensorProto.INT64, TensorProto.FLOAT]


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors_of_classes(kernel, count):
    labels = list(range(10, 10 + count))
    check("SVMClassifier", X, CLASSES, opset=1, classlabels_ints=labels,
          **svm_classes(count, kernel))  # fmt: skip


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("how", ["NONE", "SOFTMAX"])
def test_probabilities_of_classes(how, count):
    words = [f"c{i}" for i in range(count)]
    check("SVMClassifier", X, [TensorProto.STRING, TensorProto.FLOAT], opset=1, post_transform=how,
          classlabels_strings=words, **svm_classes(count, "RBF", odds=True))  # fmt: skip


@pytest.mark.parametrize("is_positive", [False, True])
@pytest.mark.parametrize("how", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("count", [2, 3])
def test_linear_classes(count, how, is_positive):
    """Without support vectors there is a row of coefficients for each class."""
    weights = np.random.default_rng(count).standard_normal(4 * count)
    check("SVMClassifier", X, CLASSES, opset=1, classlabels_ints=list(range(count)), rho=[0.2],
          coefficients=abs(weights) if is_positive else weights, post_transform=how,
          kernel_params=[0.0, 0.0, 0.0])  # fmt: skip


def test_support_vectors_that_do_not_fit():
    attributes = svm_classes(3, "RBF") | {"rho": [0.1, 0.2]}
    m = model(
        [helper.make_node("SVMClassifier", ["x"], ["y", "z"], domain="ai.onnx.ml",
                          classlabels_ints=[0, 1, 2], **attributes)],
        [value("x", ("n", 4))], [value("y", None, INT64), value("z", None)],
        opsets=[helper.make_opsetid("ai.onnx.ml", 1)],
    )  # fmt: skip
    with pytest.raises(tvm.error.OpError, match="12 coefficients and 3 numbers in rho, got 12 and"):
        from_onnx(m)


STRING, DOUBLE = TensorProto.STRING, TensorProto.DOUBLE
VECTORIZER = ("DictVectorizer", {"string_vocabulary": ["a", "c", "b", "z"]})
NUMBERS = {1: 1.9, 7: -2.5, 0: 1e10}
# operator and attributes, types of keys, values and the result, the map, what it gives where the
# Python interface of ONNX Runtime takes no such map
MAPS = [
    (*VECTORIZER, STRING, FLOAT, FLOAT, {"a": 4.0, "c": 8.5}, None),
    (*VECTORIZER, STRING, FLOAT, FLOAT, {"a": 4.0, "unknown": 8.5}, None),
    (*VECTORIZER, STRING, INT64, INT64, {"a": 4, "z": 2**60 + 1}, [4, 0, 0, 2**60 + 1]),
    ("DictVectorizer", {"int64_vocabulary": [7, 3, 1]}, INT64, DOUBLE, DOUBLE,
     {1: 0.1, 7: 0.2}, [0.2, 0, 0.1]),
    ("DictVectorizer", {"int64_vocabulary": [7, 3, 1]}, INT64, STRING, STRING,
     {1: "u", 7: "v"}, ["v", "", "u"]),
    ("CastMap", {}, INT64, FLOAT, FLOAT, NUMBERS, None),
    ("CastMap", {"cast_to": "TO_INT64"}, INT64, FLOAT, INT64, NUMBERS, None),
    ("CastMap", {"cast_to": "TO_STRING"}, INT64, FLOAT, STRING, NUMBERS, None),
    ("CastMap", {"map_form": "SPARSE", "max_map": 10}, INT64, FLOAT, FLOAT, NUMBERS, None),
    ("CastMap", {"map_form": "SPARSE", "max_map": 5}, INT64, FLOAT, FLOAT, NUMBERS, None),
    ("CastMap", {"map_form": "SPARSE", "max_map": 9, "cast_to": "TO_STRING"}, INT64, FLOAT, STRING,
     NUMBERS, None),
    ("CastMap", {}, INT64, STRING, FLOAT, {7: "-2.5", 1: "1.5"}, [1.5, -2.5]),
    ("CastMap", {"map_form": "SPARSE", "max_map": 3, "cast_to": "TO_INT64"}, INT64, STRING, INT64,
     {2: "12"}, [0, 0, 12]),
]  # fmt: skip


def map_model(op, attributes, key, of, result):
    x = helper.make_value_info("x", TypeProto())
    x.type.map_type.key_type = key
    x.type.map_type.value_type.tensor_type.elem_type = of
    made = helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    opsets = [helper.make_opsetid("ai.onnx.ml", 3)]
    return model([made], [x], [value("y", None, result)], opsets=opsets)


@pytest.mark.parametrize(("op", "attributes", "key", "of", "result", "given", "expected"), MAPS)
def test_maps_as_rows(op, attributes, key, of, result, given, expected):
    m = map_model(op, attributes, key, of, result)
    if expected is None:
        (expected,) = onnxruntime.InferenceSession(m.SerializeToString()).run(None, {"x": given})
    else:
        expected = np.array([expected], helper.tensor_dtype_to_np_dtype(result))
    vm = relax.VirtualMachine(tvm.compile(from_onnx(m), target="llvm"), tvm.cpu())
    got = vm["main"](given).numpy()
    assert got.shape == expected.shape
    assert result == STRING or got.dtype == expected.dtype
    assert got.tolist() == expected.tolist()


def test_maps_of_the_wrong_kind():
    with pytest.raises(tvm.error.OpError, match="expected words as keys, got others"):
        from_onnx(map_model(*VECTORIZER, INT64, FLOAT, FLOAT))
    sparse = {"map_form": "SPARSE", "max_map": 2**62}
    with pytest.raises(
        tvm.error.OpError, match=r"expected max_map in \[1, .*, got 4611686018427387904"
    ):
        from_onnx(map_model("CastMap", sparse, INT64, FLOAT, FLOAT))
    m = map_model("CastMap", {}, INT64, FLOAT, FLOAT)
    vm = relax.VirtualMachine(tvm.compile(from_onnx(m), target="llvm"), tvm.cpu())
    with pytest.raises(TypeError, match="map: expected an integer as a key"):
        vm["main"]({"a": 1.0})
    with pytest.raises(TypeError, match="map: expected a number as a value"):
        vm["main"]({1: "a"})


@pytest.mark.parametrize("labels", [[3, 1, 7, 5], ["a", "b", "c", "d"]])
def test_rows_as_maps(labels):
    is_text = isinstance(labels[0], str)
    attributes = {"classlabels_strings" if is_text else "classlabels_int64s": labels}
    m = model(
        [helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", **attributes)],
        [value("x", ("n", 4))], [value("y", None)], opsets=[helper.make_opsetid("ai.onnx.ml", 1)],
    )  # fmt: skip
    m.graph.output[0].ClearField("type")
    kind = m.graph.output[0].type.sequence_type.elem_type.map_type
    kind.key_type = TensorProto.STRING if is_text else TensorProto.INT64
    kind.value_type.tensor_type.elem_type = TensorProto.FLOAT
    (expected,) = onnxruntime.InferenceSession(m.SerializeToString()).run(None, {"x": X})
    vm = relax.VirtualMachine(tvm.compile(from_onnx(m), target="llvm"), tvm.cpu())
    got = [dict(row.items()) for row in vm["main"](tvm.runtime.tensor(X))]
    assert got == expected
