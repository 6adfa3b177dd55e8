# SPDX-License-Identifier: Apache-2.0
"""Reading models: paths, bytes, external data, and files that are none."""

import os

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper
from tvm.relax.frontend.onnx import from_onnx, inspect

from .models import INT64, linear, model, node, value


def test_path_bytes_and_proto_give_the_same(tmp_path):
    proto = linear()
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    expected = from_onnx(proto)
    for given in (path, str(path), proto.SerializeToString(), bytearray(path.read_bytes())):
        tvm.ir.assert_structural_equal(from_onnx(given), expected)


def test_wrong_kind_of_model():
    with pytest.raises(TypeError, match="expected a ModelProto, a path or bytes, got int"):
        from_onnx(3)
    with pytest.raises(FileNotFoundError, match="no such file"):
        from_onnx("/nonexistent/model.onnx")


def external(tmp_path, location="weights.bin", **entries):
    proto = linear()
    onnx.save(
        proto,
        tmp_path / "model.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    proto = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    for tensor in proto.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location
            elif entry.key in entries:
                entry.value = str(entries[entry.key])
    onnx.save(proto, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_external_data(tmp_path):
    path = external(tmp_path)
    tvm.ir.assert_structural_equal(from_onnx(path), from_onnx(linear()))


@pytest.mark.parametrize("location", ["../secret.bin", "link.bin", "/etc/passwd"])
def test_external_data_stays_in_the_folder(tmp_path, location):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(1000))
    os.symlink(tmp_path / "secret.bin", folder / "link.bin")
    with pytest.raises(ValueError, match="expected external data in the model's folder"):
        from_onnx(external(folder, location))


def test_external_data_is_checked(tmp_path):
    with pytest.raises(ValueError, match="no file 'other.bin'"):
        from_onnx(external(tmp_path, "other.bin"))
    with pytest.raises(ValueError, match="got a file of"):
        from_onnx(external(tmp_path, offset=10**18))
    with pytest.raises(ValueError, match="expected 48 bytes of data, got 4"):
        from_onnx(external(tmp_path, length=4))
    bytes_only = external(tmp_path).read_bytes()
    with pytest.raises(ValueError, match="expected a model read from a file"):
        from_onnx(bytes_only)


def test_truncated_files_raise():
    data = linear().SerializeToString()
    for size in range(len(data)):
        try:
            from_onnx(data[:size])
        except (ValueError, tvm.TVMError):
            pass


def test_not_a_model():
    with pytest.raises(ValueError, match="expected a model with a graph, got none"):
        from_onnx(b"")
    with pytest.raises(ValueError, match="ModelProto"):
        from_onnx(b"\xff" * 20)
    with pytest.raises(ValueError, match="expected IR version 3 or newer, got 2"):
        proto = linear()
        proto.ir_version = 2
        from_onnx(proto)


def nested(depth):
    """Bytes of a model whose only node has a graph in a graph in a graph."""

    def field(number, payload):
        size, head = len(payload), bytearray([number << 3 | 2])
        while True:
            head.append((size & 0x7F) | (0x80 if size > 0x7F else 0))
            size >>= 7
            if not size:
                return bytes(head) + payload

    graph = b""
    for _ in range(depth):
        attribute = field(1, b"g") + field(6, graph)
        graph = field(1, field(4, b"If") + field(5, attribute))
    return b"\x08\x0a" + field(7, graph)


def test_deep_nesting_raises():
    with pytest.raises(RecursionError, match="nested at most 200 deep"):
        from_onnx(nested(10_000))


def test_data_must_fit_the_shape():
    proto = linear()
    proto.graph.initializer[0].dims[0] = 5
    with pytest.raises(ValueError, match="tensor 'w': expected 60 bytes of data, got 48"):
        from_onnx(proto)
    proto.graph.initializer[0].dims[0] = -1
    with pytest.raises(ValueError, match="extents of at least 0"):
        from_onnx(proto)
    proto.graph.initializer[0].dims[0] = 2**62
    with pytest.raises((MemoryError, ValueError)):
        from_onnx(proto)


@pytest.mark.parametrize("shift", range(4))
def test_weights_at_any_address(shift, tmp_path):
    """They are views of the file, and what reads them does not mind where they lie."""
    rng = np.random.default_rng(shift)
    w, v = (rng.standard_normal((64, 64)).astype("float32") for _ in range(2))
    nodes = [node("Add", "w v", "sum"), node("Transpose", "sum", "t"), node("MatMul", "x t", "y")]
    proto = model(
        [*nodes, node("Softmax", "y", "z"), node("Add", "z v", "out")],
        [value("x", (64, 64))],
        [value("out", (64, 64))],
        {"w": w, "v": v},
        producer_name="p" * shift,
    )
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    mod = from_onnx(path)
    x = rng.standard_normal((64, 64)).astype("float32")
    y = x @ (w + v).T
    e = np.exp(y - y.max(-1, keepdims=True))
    expected = e / e.sum(-1, keepdims=True) + v
    run = tvm.relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())["main"]
    np.testing.assert_allclose(run(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    mod, params = tvm.relax.frontend.detach_params(from_onnx(path, keep_params_in_input=True))
    np.testing.assert_array_equal(params["main"][0].numpy(), w)
    run = tvm.relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())["main"]
    np.testing.assert_allclose(run(x, *params["main"]).numpy(), expected, rtol=1e-4, atol=1e-5)


TYPES = [
    (TensorProto.FLOAT, [1.5, -2]),
    (TensorProto.DOUBLE, [1.5, -2]),
    (TensorProto.FLOAT16, [1.5, -2]),
    (TensorProto.BFLOAT16, [1.5, -2]),
    (TensorProto.INT8, [1, -2]),
    (TensorProto.UINT8, [1, 200]),
    (TensorProto.INT16, [1, -2]),
    (TensorProto.UINT16, [1, 60000]),
    (TensorProto.INT32, [1, -2]),
    (TensorProto.UINT32, [1, 2**31]),
    (TensorProto.INT64, [1, -2]),
    (TensorProto.UINT64, [1, 2**63]),
    (TensorProto.BOOL, [True, False]),
    (TensorProto.FLOAT8E4M3FN, [1.5, -2]),
    (TensorProto.FLOAT8E5M2, [1.5, -2]),
]


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize(("dtype", "values"), TYPES)
def test_types_of_weights(dtype, values, raw):
    tensor = helper.make_tensor("w", dtype, [2], values)
    array = onnx.numpy_helper.to_array(tensor)
    if raw:
        tensor = helper.make_tensor("w", dtype, [2], array.tobytes(), raw=True)
    proto = model([node("Identity", "w", "y")], [], [value("y", (2,), dtype)])
    proto.graph.initializer.append(tensor)
    mod = from_onnx(proto, keep_params_in_input=True)
    (weight,) = tvm.relax.frontend.detach_params(mod)[1]["main"]
    assert str(weight.dtype) == str(array.dtype)
    assert weight.numpy().tobytes() == array.tobytes()


def test_sparse_weights():
    values = helper.make_tensor("s", TensorProto.FLOAT, [2], [5.0, 7.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [2, 2], [0, 1, 2, 0])
    proto = model([node("Identity", "s", "y")], [], [value("y", (3, 2))])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3, 2]))
    mod = from_onnx(proto, keep_params_in_input=True)
    (weight,) = tvm.relax.frontend.detach_params(mod)[1]["main"]
    np.testing.assert_array_equal(weight.numpy(), [[0, 5], [0, 0], [7, 0]])
    proto.graph.sparse_initializer[0].indices.int64_data[0] = 3
    with pytest.raises(ValueError, match="expected indices below 3, got 3"):
        from_onnx(proto)


def test_memory_limit_holds_for_sparse_weights():
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [5.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [1])
    proto = model([node("Identity", "s", "y")], [], [value("y", None)])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [1 << 40]))
    with pytest.raises(MemoryError, match="at most 4294967296 bytes .* the sparse tensor 's'"):
        from_onnx(proto)
    with pytest.raises(ValueError, match="a memory_limit of at least 0, got -1"):
        from_onnx(proto, memory_limit=-1)


def test_memory_limit_holds_for_functions_that_double():
    """40 functions, each of which calls the one before twice."""
    opset = helper.make_opsetid("", 21)
    own = helper.make_opsetid("f", 1)
    functions = [helper.make_function("f", "f0", ["a"], ["b"], [node("Neg", "a", "b")], [opset])]
    for i in range(1, 40):
        calls = [node(f"f{i - 1}", "a", "c", domain="f"), node(f"f{i - 1}", "c", "b", domain="f")]
        functions.append(helper.make_function("f", f"f{i}", ["a"], ["b"], calls, [opset, own]))
    nodes = [node("f39", "x", "y", domain="f")]
    proto = model(nodes, [value("x", (2,))], [value("y", (2,))], functions=functions, opsets=[own])
    with pytest.raises(MemoryError, match="at most 1000000 bytes .* got more with its 244 nodes"):
        from_onnx(proto, memory_limit=1000000)


def loop(turns, nodes):
    """A loop that counts up from 0 by carrying `c`; `nodes` give `more`, whether it goes on."""
    body = helper.make_graph(
        nodes,
        "body",
        [value("i", (), INT64), value("go", (), TensorProto.BOOL), value("c", (), INT64)],
        [value("more", (), TensorProto.BOOL), value("next", (), INT64)],
    )
    weights = {"turns": np.array(turns), "zero": np.array(0), "one": np.array(1)}
    made = helper.make_node("Loop", ["turns", "", "zero"], ["y"], body=body)
    return model([made], [value("last", (), INT64)], [value("y", (), INT64)], weights)


@pytest.mark.parametrize("exec_mode", ["bytecode", "compiled"])
def test_loop_of_all_turns_there_are(exec_mode):
    """Such a number is written where only the condition ends a loop."""
    nodes = [node("Add", "c one", "next"), node("Less", "next last", "more")]
    built = tvm.relax.build(from_onnx(loop(2**63 - 1, nodes)), "llvm", exec_mode=exec_mode)
    vm = tvm.relax.VirtualMachine(built, tvm.cpu())
    assert int(vm["main"](tvm.runtime.tensor(np.array(30_000))).numpy()) == 30_000


def test_loop_that_would_never_end():
    go = helper.make_node("Identity", ["go"], ["more"])
    mod = from_onnx(loop(2**63 - 1, [node("Add", "c last", "next"), go]))
    vm = tvm.relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    with pytest.raises(ValueError, match="at most 1099511627776 turns .* got 9223372036854775807"):
        vm["main"](tvm.runtime.tensor(np.array(1)))


def test_errors_say_what_the_node_was_given(tmp_path):
    path = tmp_path / "bad.onnx"
    nodes = [node("MatMul", "x w", "y")]
    proto = model(nodes, [value("x", ("n", 4))], [value("y", None)], {"w": np.ones((3, 2), "f4")})
    onnx.save(proto, path)
    with pytest.raises(ValueError, match=r"\(MatMul\)") as error:
        from_onnx(path)
    for part in ("opset 21", "bad.onnx", "input 'x': float32(n, 4)", "input 'w': float32(3, 2)"):
        assert part in str(error.value)


def test_inspect(tmp_path):
    nodes = [node("Relu", "x", "h"), node("Foo", "h", "y", domain="my", name="foo")]
    proto = model(nodes, [value("x", ("n", 3))], [value("y", None)], {"w": np.ones(4, "float32")})
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    for given in (proto, path):
        assert inspect(given).splitlines() == [
            "IR version 10, ai.onnx 21",
            "input  x: float32 (n, 3)",
            "output y: float32 of unknown rank",
            "dimensions that running tells: n",
            "1 weights, 16 bytes",
            "1 x Relu",
            "1 x my.Foo (not supported: nodes 'foo')",
        ]
