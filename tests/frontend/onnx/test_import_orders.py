# SPDX-License-Identifier: Apache-2.0
"""Whoever imports torch, onnx, onnxruntime and tvm does so in any order: libraries that bring the
same dependencies do not get into each other's way."""

import itertools
import subprocess
import sys

import pytest

PEERS = ("torch", "onnx", "onnxruntime", "tvm")
# Each of them does some work when all are there.
USE = """
import numpy as np
from onnx import TensorProto, helper
from tvm.relax.frontend.onnx import from_onnx

info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xy"]
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", info[:1], info[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
onnx.checker.check_model(model)
x = np.linspace(-1, 1, 4, dtype="float32")
session = onnxruntime.InferenceSession(model.SerializeToString())
vm = tvm.relax.VirtualMachine(tvm.compile(from_onnx(model), target="llvm"), tvm.cpu())
results = [
    session.run(None, {"x": x})[0],
    torch.relu(torch.from_numpy(x)).numpy(),
    vm["main"](tvm.runtime.tensor(x)).numpy(),
]
for result in results:
    np.testing.assert_array_equal(result, np.maximum(x, 0))
"""


@pytest.mark.parametrize("order", itertools.permutations(PEERS), ids="-".join)
def test_every_order_of_imports(order):
    code = "".join(f"import {name}\n" for name in order) + USE
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
