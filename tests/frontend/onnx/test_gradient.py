# SPDX-License-Identifier: Apache-2.0
"""Gradients of parts of a graph: Gradient of ai.onnx.preview.training, compared with PyTorch."""

import numpy as np
import pytest
import torch
import tvm
from onnx import helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from .models import model, node, value

DOMAIN = "ai.onnx.preview.training"
OPSETS = [helper.make_opsetid(DOMAIN, 1)]


def gradient(inputs, outputs, **attributes):
    return node("Gradient", inputs, outputs, domain=DOMAIN, **attributes)


def results(proto, *args, **options):
    vm = relax.VirtualMachine(tvm.compile(from_onnx(proto, **options), target="llvm"), tvm.cpu())
    return [r.numpy() for r in vm["main"](*args)]


def layers(**attributes):
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((4, 3)).astype("float32")}
    nodes = [
        node("MatMul", "x w", "p"), node("Add", "p b", "s"), node("Tanh", "s", "y"),
        gradient("x b", "dx db", **{"xs": ["x", "b"], "y": "y", **attributes}),
    ]  # fmt: skip
    infos = [value("x", ("batch", 4)), value("b", (3,))]
    outputs = [value(o, None) for o in ("y", "dx", "db")]
    return model(nodes, infos, outputs, weights, opsets=OPSETS), weights["w"]


@pytest.mark.parametrize("keep", [False, True])
def test_gradient_of_any_batch(keep):
    """Of the sum of all results; the weight is a constant or a parameter."""
    proto, w = layers()
    kept = [torch.from_numpy(w.copy())] if keep else []
    for batch in (2, 5):
        x, b = torch.randn(batch, 4, requires_grad=True), torch.randn(3, requires_grad=True)
        y = torch.tanh(x @ torch.from_numpy(w) + b)
        y.sum().backward()
        args = [t.detach().numpy() for t in (x, b, *kept)]
        got = results(proto, *args, keep_params_in_input=keep)
        for a, e in zip(got, (y, x.grad, b.grad), strict=True):
            np.testing.assert_allclose(a, e.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_other_values_than_those_of_the_graph():
    """The inputs of the node are what the names stand for, also those that have no gradient."""
    nodes = [
        node("Mul", "x z", "y"), node("Add", "x x", "other"),
        gradient("other z2", "dx", xs=["x"], zs=["z"], y="square"), node("Mul", "y x", "square"),
    ]  # fmt: skip
    nodes[2:] = nodes[:1:-1]
    infos = [value("x", (3,)), value("z", (3,)), value("z2", (3,))]
    proto = model(nodes, infos, [value("dx", None), value("y", None)], opsets=OPSETS)
    x, z, z2 = (np.array(v, "float32") for v in ([1, 2, 3], [4, 5, 6], [7, 8, 9]))
    dx, y = results(proto, x, z, z2)
    np.testing.assert_array_equal(y, x * z)
    np.testing.assert_array_equal(dx, 2 * (2 * x) * z2)


@pytest.mark.parametrize(
    "attributes, text",
    [({"y": "q"}, "expected the name of a value as y, got 'q'"),
     ({"zs": ["w"]}, "expected as many inputs as names in xs and zs, got 2")],
)  # fmt: skip
def test_names_that_nothing_has(attributes, text):
    with pytest.raises(ValueError, match=text):
        from_onnx(layers(**attributes)[0])
