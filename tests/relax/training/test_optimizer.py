# SPDX-License-Identifier: Apache-2.0
"""Optimizers against PyTorch."""

import numpy as np
import pytest
import torch
from tvm import ir, relax
from tvm.relax.testing.evaluate import Evaluator, from_tvm
from tvm.relax.training import optimizer
from tvm.script import relax as R

CASES = {
    "sgd": (lambda: optimizer.SGD(0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "sgd_decay": (
        lambda: optimizer.SGD(0.1, 0.02),
        lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.02),
    ),
    "momentum": (
        lambda: optimizer.MomentumSGD(0.1, 0.9, weight_decay=0.01),
        lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.01),
    ),
    "nesterov": (
        lambda: optimizer.MomentumSGD(0.1, 0.9, nesterov=True),
        lambda p: torch.optim.SGD(p, 0.1, 0.9, nesterov=True),
    ),
    "adam": (
        lambda: optimizer.Adam(0.01, weight_decay=0.1),
        lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.1),
    ),
}
SHAPES = [(3, 4), (5,)]


@pytest.mark.parametrize("name", CASES)
def test_steps(name):
    make, reference = CASES[name]
    params = [relax.Var(f"p{i}", R.Tensor(s, "float64")) for i, s in enumerate(SHAPES)]
    made = make().init(params)
    mod = ir.IRModule({made.name: made.get_function()})
    assert relax.analysis.well_formed(mod)
    rng = np.random.default_rng(0)
    values = tuple(rng.uniform(-1, 1, s) for s in SHAPES)
    state = tuple(from_tvm(s) for s in made.state)
    tensors = [torch.nn.Parameter(torch.tensor(v)) for v in values]
    theirs = reference(tensors)
    for _ in range(4):
        gradients = tuple(rng.uniform(-1, 1, s) for s in SHAPES)
        values, state = Evaluator(mod).run(made.name, [values, gradients, state])
        for tensor, gradient in zip(tensors, gradients, strict=True):
            tensor.grad = torch.tensor(gradient)
        theirs.step()
    for value, tensor in zip(values, tensors, strict=True):
        np.testing.assert_allclose(value, tensor.detach().numpy(), rtol=1e-9)
    assert state[0] == 4


def test_errors():
    x = relax.Var("x", R.Tensor((3,), "float32"))
    with pytest.raises(RuntimeError, match="expected init before the function"):
        optimizer.SGD(0.1).get_function()
    with pytest.raises(RuntimeError, match="expected init before the state"):
        _ = optimizer.SGD(0.1).state
    with pytest.raises(ValueError, match="expected init once"):
        optimizer.SGD(0.1).init(x).init(x)
    with pytest.raises(ValueError, match="expected at least one parameter"):
        optimizer.SGD(0.1).init([])
    for info in (R.Tensor((3,), "int32"), R.Tensor(dtype="float32", ndim=1)):
        with pytest.raises(ValueError, match="expected tensors of floating-point numbers"):
            optimizer.SGD(0.1).init(relax.Var("y", info))
    with pytest.raises(ValueError, match="expected parameters of one type"):
        optimizer.Adam(0.1).init([x, relax.Var("y", R.Tensor((3,), "float64"))])
    with pytest.raises(ValueError, match="expected each parameter once"):
        optimizer.Adam(0.1).init([x, x])
