# SPDX-License-Identifier: Apache-2.0
"""The older door: relay.build and the graph executor."""

import json

import numpy as np
import pytest
import tvm
from tvm import relax, relay
from tvm.contrib import graph_executor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 16), "float32")
W = RNG.standard_normal((16, 8), "float32")
EXPECTED = np.maximum(X @ W + 2, 0), (X @ W).sum(1)


@pytest.fixture(scope="module")
def mod():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, 16), "float32"))
    w = relax.Var("w", relax.TensorStructInfo((16, 8), "float32"))
    with bb.function("main", [x, w]):
        with bb.dataflow():
            y = bb.emit(relax.op.matmul(x, w))
            a = bb.emit_output(
                relax.op.nn.relu(relax.op.add(y, relax.const(2 * np.ones((4, 8), "float32"))))
            )
            b = bb.emit_output(relax.op.sum(y, axis=1))
        bb.emit_func_output(relax.Tuple([a, b]))
    return bb.get()


def check(module):
    for i, expected in enumerate(EXPECTED):
        np.testing.assert_allclose(module.get_output(i).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_three_components(mod):
    graph, lib, params = relay.build(mod, target="llvm", params={"w": W})
    module = graph_executor.create(graph, lib, tvm.cpu())
    module.set_input("x", X)
    module.set_input(**params)
    module.run()
    check(module)
    names = [node["name"] for node in json.loads(graph)["nodes"] if node["op"] == "null"]
    assert names[:2] == ["x", "w"]


def test_the_factory(mod, tmp_path):
    factory = relay.build_module.build(mod, "llvm", params={"w": W})
    module = graph_executor.GraphModule(factory["default"](tvm.cpu()))
    module.run(x=X)
    check(module)
    factory.export_library(tmp_path / "model.so")
    loaded = tvm.runtime.load_module(tmp_path / "model.so")
    again = graph_executor.GraphModule(loaded["default"](tvm.cpu()))
    again.run(x=X)
    check(again)


def test_the_methods_of_an_executor(mod):
    factory = relay.build(mod, "llvm")
    module = graph_executor.GraphModule(factory["default"](tvm.cpu()))
    assert module.get_num_outputs() == 2 and module.get_num_inputs() >= 2
    shapes, types = module.get_input_info()
    assert tuple(shapes["x"]) == (4, 16) and types["w"] == "float32"
    module.load_params(relay.save_param_dict({"w": tvm.runtime.tensor(W)}))
    module.set_input(0, X)
    module.run()
    check(module)
    np.testing.assert_array_equal(module.get_input("w").numpy(), W)
    out = tvm.runtime.empty((4, 8), "float32")
    np.testing.assert_allclose(module.get_output(0, out).numpy(), EXPECTED[0], rtol=1e-4, atol=1e-4)
    other = graph_executor.GraphModule(factory["default"](tvm.cpu()))
    other.share_params(module, relay.save_param_dict({"w": tvm.runtime.tensor(W)}))
    other.run(x=X)
    check(other)
    assert module.benchmark(tvm.cpu(), repeat=2, number=2).mean > 0


def test_memory_is_reused():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((64, 64), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for _ in range(8):
                y = bb.emit(relax.op.matmul(y, x))
            out = bb.emit_output(y)
        bb.emit_func_output(out)
    graph, _, _ = relay.build(bb.get(), "llvm")
    storages = json.loads(graph)["attrs"]["storage_id"][1]
    assert len(set(storages)) <= 4 < len(storages)  # x, two that alternate, the result


def test_errors(mod):
    factory = relay.build(mod, "llvm")
    module = graph_executor.GraphModule(factory["default"](tvm.cpu()))
    with pytest.raises(ValueError, match="there is no input 'y'"):
        module.set_input("y", X)
    with pytest.raises(IndexError, match="expected an output below 2, got 7"):
        module.get_output(7)
    with pytest.raises(ValueError, match="graph: expected a JSON object"):
        graph_executor.create("not json", factory.get_lib(), tvm.cpu())
    broken = json.loads(factory.get_graph_json())
    broken["heads"] = [[99, 0, 0]]
    with pytest.raises(ValueError, match="expected a node below"):
        graph_executor.create(json.dumps(broken), factory.get_lib(), tvm.cpu())

    n = tvm.tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n,), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(relax.op.exp(x))
        bb.emit_func_output(out)
    with pytest.raises(ValueError, match="expected constant dimensions"):
        relay.build(bb.get(), "llvm")
