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


def test_kernels_are_recorded_and_replayed():
    mod, expected = perceptron("float32")
    with tvm.transform.PassContext(config={"relax.backend.use_cuda_graph": True}):
        executable = tvm.compile(mod, tvm.target.Target("cuda", host="c"))
    assert "cuda_graph.run_or_capture" in executable.as_text()
    vm = relax.VirtualMachine(executable, tvm.cuda(0))
    for _ in range(4):  # runs, is recorded; is replayed
        a = RNG.standard_normal((128, 256)).astype("float32")
        y = vm["main"](tvm.runtime.tensor(a, tvm.cuda(0)))
        np.testing.assert_allclose(y.numpy().astype("float64"), expected(a), atol=1e-5)
    used = tvm.runtime.DeviceMemory(tvm.cuda(0))["used"]
    del vm, y
    assert tvm.runtime.DeviceMemory(tvm.cuda(0))["used"] <= used


def test_recorded_kernels_find_weights_that_moved():
    """Weights that are arguments may be elsewhere in the next call."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((64, 64), "float32"))
    w = relax.Var("w", relax.TensorStructInfo((64, 64), "float32"))
    with builder.function("main", [x, w], attrs={"num_input": 1}):
        with builder.dataflow():
            twice = builder.emit(relax.op.matmul(w, w))
            out = builder.emit_output(builder.emit(relax.op.matmul(x, twice)))
        builder.emit_func_output(out)
    with tvm.transform.PassContext(config={"relax.backend.use_cuda_graph": True}):
        executable = tvm.compile(builder.get(), tvm.target.Target("cuda", host="c"))
    vm = relax.VirtualMachine(executable, tvm.cuda(0))
    a = RNG.standard_normal((64, 64)).astype("float32")
    for _ in range(3):
        b = RNG.standard_normal((64, 64)).astype("float32")
        given = [tvm.runtime.tensor(v, tvm.cuda(0)) for v in (a, b)]
        for _ in range(2):
            wide = b.astype("float64")
            np.testing.assert_allclose(
                vm["main"](*given).numpy(), a @ (wide @ wide), rtol=1e-3, atol=1e-2
            )
