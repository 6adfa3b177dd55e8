# SPDX-License-Identifier: Apache-2.0
"""Every pass that only makes programs better can be left out, alone and in pairs; of the pairs a
sample. `python -m tests.fuzz.graph --check toggled` does so for random graphs."""

import itertools
import random

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.testing.features import host_target

from tests.relax.optional_passes import optional_passes

OPTIONAL = optional_passes()
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 8, 8), "float32")


def network():
    bb = relax.BlockBuilder()
    n = tvm.tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n, 3, 8, 8), "float32"))
    weight = relax.const(RNG.standard_normal((4, 3, 3, 3), "float32"))
    scale, shift, mean = (relax.const(RNG.standard_normal(4, "float32")) for _ in range(3))
    variance = relax.const(RNG.random(4, "float32") + 0.5)
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(relax.op.nn.conv2d(x, weight, padding=1))
            norm = bb.emit(
                relax.op.nn.batch_norm(y, scale, shift, mean, variance, 1, training=False)
            )
            y = bb.emit(relax.op.nn.relu(relax.TupleGetItem(norm, 0)))
            y = bb.emit(relax.op.reshape(y, (n, 4 * 8 * 8)))
            y = bb.emit(relax.op.nn.softmax(y))
            y = bb.emit(relax.op.add(y, relax.op.exp(y)))
            out = bb.emit_output(y)
        bb.emit_func_output(relax.Tuple([out, out]))
    return bb.get()


@pytest.fixture(scope="module")
def mod():
    return network()


def run(mod, without=()):
    with tvm.transform.PassContext(disabled_pass=list(without)):
        executable = tvm.compile(mod, host_target())
    return relax.VirtualMachine(executable, tvm.cpu())["main"](X)[1].numpy()


@pytest.fixture(scope="module")
def expected(mod):
    torch = pytest.importorskip("torch")
    w, g, b, m, v = (torch.from_numpy(c.data.numpy()) for c in relax_constants(mod))
    y = torch.nn.functional.conv2d(torch.from_numpy(X), w, padding=1)
    y = torch.nn.functional.batch_norm(y, m, v, g, b)
    y = torch.softmax(torch.relu(y).reshape(2, -1), -1)
    return (y + torch.exp(y)).numpy()


def relax_constants(mod):
    """In the order of the program: weight, scale, shift, mean, variance."""
    found = []

    def visit(expr):
        if isinstance(expr, relax.Constant):
            found.append(expr)

    relax.analysis.post_order_visit(mod["main"], visit)
    return found


def test_all(mod, expected):
    np.testing.assert_allclose(run(mod), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OPTIONAL)
def test_without_one(mod, expected, name):
    np.testing.assert_allclose(run(mod, [name]), expected, rtol=1e-4, atol=1e-5)


PAIRS = random.Random(0).sample(list(itertools.combinations(OPTIONAL, 2)), 60)


@pytest.mark.parametrize("part", range(6))
def test_without_two(mod, expected, part):
    for pair in PAIRS[part::6]:
        np.testing.assert_allclose(run(mod, pair), expected, rtol=1e-4, atol=1e-5, err_msg=pair)
