# SPDX-License-Identifier: Apache-2.0
"""Losses against PyTorch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tvm import ir, relax
from tvm.relax.testing.evaluate import Evaluator
from tvm.relax.training import AppendLoss, loss
from tvm.script import ir as I
from tvm.script import relax as R

FLOATS, CLASSES = R.Tensor((3, 5), "float32"), R.Tensor((3,), "int64")


def _run(function, *args):
    mod = ir.IRModule({"main": function.with_attr("global_symbol", "main")})
    assert relax.analysis.well_formed(mod)
    mod = relax.transform.LegalizeOps()(mod)
    return Evaluator(mod).run("main", list(args))


def _data():
    rng = np.random.default_rng(0)
    return rng.uniform(-2, 2, (2, 3, 5)).astype("float32")


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("make, expected", [(loss.L1Loss, F.l1_loss), (loss.MSELoss, F.mse_loss)])
def test_differences(make, expected, reduction):
    a, b = _data()
    made = make(reduction)
    found = _run(made(FLOATS, FLOATS), a, b)
    want = expected(torch.tensor(a), torch.tensor(b), reduction=reduction)
    np.testing.assert_allclose(found, want.numpy(), rtol=1e-5)
    assert made.num_backbone_outputs == 1


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(reduction, weighted):
    a, _ = _data()
    targets, weights = np.array([1, 4, 0]), np.linspace(0.5, 2, 5, dtype="float32")
    infos = [FLOATS, CLASSES] + ([R.Tensor((5,), "float32")] if weighted else [])
    args = [a, targets] + ([weights] if weighted else [])
    found = _run(loss.CrossEntropyLoss(reduction, ignore_index=4)(*infos), *args)
    want = F.cross_entropy(
        torch.tensor(a),
        torch.tensor(targets),
        torch.tensor(weights) if weighted else None,
        reduction=reduction,
        ignore_index=4,
    )
    np.testing.assert_allclose(found, want.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_categorical_cross_entropy(reduction):
    a, b = _data()
    b = np.abs(b) / np.abs(b).sum(-1, keepdims=True)
    made = loss.CategoricalCrossEntropyLoss(reduction)
    found = _run(made(FLOATS, FLOATS), a, b)
    want = F.cross_entropy(torch.tensor(a), torch.tensor(b), reduction=reduction)
    np.testing.assert_allclose(found, want.numpy(), rtol=1e-5)


def test_unknown_reduction():
    with pytest.raises(ValueError, match="expected reduction mean, sum or none, got median"):
        loss.MSELoss("median")


@I.ir_module
class Backbone:
    @R.function
    def predict(x: R.Tensor((3, 5), "float32"), w: R.Tensor((5, 5), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            R.output(y, z)
        return (y, z)


def test_append_loss():
    @I.ir_module
    class Expected:
        @R.function
        def predict(x: R.Tensor((3, 5), "float32"), w: R.Tensor((5, 5), "float32")):
            with R.dataflow():
                y = R.matmul(x, w)
                z = R.nn.relu(y)
                R.output(y, z)
            return (y, z)

        @R.function
        def predict_loss(
            x: R.Tensor((3, 5), "float32"),
            w: R.Tensor((5, 5), "float32"),
            targets: R.Tensor((3, 5), "float32"),
        ):
            with R.dataflow():
                y = R.matmul(x, w)
                z = R.nn.relu(y)
                a = R.subtract(y, targets)
                b = R.abs(a)
                c = R.mean(b)
                R.output(c, z)
            return (c, z)

    made = loss.L1Loss()(FLOATS, FLOATS)
    after = AppendLoss("predict", made)(Backbone)
    assert relax.analysis.well_formed(after)
    ir.assert_structural_equal(after["predict"], Expected["predict"])
    a, b = _data()
    w = np.eye(5, dtype="float32")
    value, rest = Evaluator(after).run("predict_loss", [a, w, b])
    np.testing.assert_allclose(value, np.abs(a - b).mean(), rtol=1e-5)
    np.testing.assert_allclose(rest, np.maximum(a, 0))
    assert len(after["predict_loss"].body.blocks) == 1
    with pytest.raises(ValueError, match="expected num_backbone_outputs between 1 and 2"):
        AppendLoss("predict", made, 3)(Backbone)
    named = AppendLoss("predict", made, new_func_name="other")(Backbone)
    assert "other" in named
