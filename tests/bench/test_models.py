# SPDX-License-Identifier: Apache-2.0
"""The models of the benchmarks are the same in PyTorch, in Relax and in ONNX."""

import numpy as np
import onnxruntime
import pytest
import torch
from tvm import relax

from bench import model_ops
from bench.models import MODELS, Model

from . import symbolic

SMALL = ("mlp", "mobilenet_v2", "gpt2_decode")


@pytest.mark.parametrize("name", SMALL)
def test_onnx_model_is_the_torch_module(name):
    model = Model(name)
    inputs = model.inputs()
    with torch.no_grad():
        want = model_ops.torch_module(model)(*map(torch.from_numpy, inputs))
    session = onnxruntime.InferenceSession(model_ops.onnx_model(model))
    got = session.run(None, dict(zip(model.signature, inputs, strict=True)))
    for a, b in zip(got, want, strict=True):
        assert np.abs(a - b.numpy()).max() <= 1e-4 * np.abs(b.numpy()).max()


@pytest.mark.parametrize("name", MODELS)
def test_relax_module_is_well_formed(name):
    model = Model(name)
    model.weights = lambda name, shape, *_: np.broadcast_to(np.float32(0), shape)
    mod = model_ops.relax_module(model)
    assert relax.analysis.well_formed(mod)
    info = [
        (str(p.struct_info.dtype), tuple(map(int, p.struct_info.shape))) for p in mod["main"].params
    ]
    assert info == list(model.signature.values())


def test_weights_depend_on_name_and_seed_alone():
    a, b, c = Model("mlp"), Model("mlp"), Model("mlp", seed=1)
    a.weights("y", (2,))
    assert np.array_equal(a.weights("x", (3, 4)), b.weights("x", (3, 4)))
    assert not np.array_equal(a.weights("x", (3, 4)), c.weights("x", (3, 4)))


@pytest.mark.parametrize("name", ["mlp", "gpt2_decode"])
def test_one_executable_serves_all_shapes(name):
    symbolic.check(name)
