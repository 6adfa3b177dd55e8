# SPDX-License-Identifier: Apache-2.0
"""Graphs of operators that run on a GPU, against NumPy."""

import numpy as np
import pytest
import tvm
from tvm import relax

RNG = np.random.default_rng(2)


def perceptron(dtype, rows=128, inner=256, wide=512):
    w1, w2 = (RNG.standard_normal(s).astype(dtype) * 0.1 for s in ((inner, wide), (wide, inner)))
    bias = RNG.standard_normal(wide).astype(dtype)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((rows, inner), dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            hidden = builder.emit(relax.op.matmul(x, relax.const(w1.astype(dtype))))
            hidden = builder.emit(relax.op.add(hidden, relax.const(bias)))
            hidden = builder.emit(relax.op.nn.relu(hidden))
            last = builder.emit(relax.op.matmul(hidden, relax.const(w2.astype(dtype))))
            out = builder.emit_output(builder.emit(relax.op.nn.softmax(last, axis=-1)))
        builder.emit_func_output(out)

    def expected(a):
        wide = np.maximum(a.astype("float64") @ w1.astype("float64") + bias, 0)
        y = wide @ w2.astype("float64")
        e = np.exp(y - y.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    return builder.get(), expected


@pytest.mark.parametrize("dtype, bound", [("float16", 5e-3), ("float32", 1e-5)])
def test_results_are_those_of_numpy(dtype, bound):
    mod, expected = perceptron(dtype)
    target = tvm.target.Target("cuda", host="c")
    vm = relax.VirtualMachine(tvm.compile(mod, target), tvm.cuda(0))
    for _ in range(3):
        a = RNG.standard_normal((128, 256)).astype(dtype)
        y = vm["main"](tvm.runtime.tensor(a, tvm.cuda(0)))
        np.testing.assert_allclose(y.numpy().astype("float64"), expected(a), atol=bound)
