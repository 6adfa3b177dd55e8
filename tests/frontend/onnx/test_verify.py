# SPDX-License-Identifier: Apache-2.0
"""Comparing a model with ONNX Runtime."""

import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from tvm.__main__ import main
from tvm.relax.frontend.onnx import verification, verify

from .models import linear


@pytest.fixture
def path(tmp_path):
    onnx.save(linear(), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_a_model_agrees(path, capsys):
    found = verify(path)
    assert found.agrees and found.first is None
    assert [d.name for d in found.outputs] == ["y"]
    assert main(["verify", str(path), "--shape", "x=5,4"]) == 0
    assert "agrees with ONNX Runtime" in capsys.readouterr().out


def test_the_first_value_that_differs_is_named(path, monkeypatch, capsys):
    def other_bias(runtime, file):
        model = onnx.load(file)
        (bias,) = (w for w in model.graph.initializer if w.name == "b")
        bias.CopyFrom(onnx.numpy_helper.from_array(np.full(3, 9, "float32"), "b"))
        return onnxruntime.InferenceSession(model.SerializeToString())

    monkeypatch.setattr(verification, "_session", other_bias)
    found = verify(path)
    assert not found.agrees
    assert (found.first.name, found.first.node) == ("s", "'' (Add)")
    assert main(["verify", str(path)]) == 1
    assert "the first value that differs: 's', of node '' (Add)" in capsys.readouterr().out
    assert [p.name for p in path.parent.iterdir()] == ["model.onnx"]


def test_what_verify_refuses(path, monkeypatch):
    with pytest.raises(SystemExit, match="expected name=2,3,4, got 'x=a'"):
        main(["verify", str(path), "--shape", "x=a"])
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match="expected onnx and onnxruntime"):
        verify(path)
