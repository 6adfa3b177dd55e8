# SPDX-License-Identifier: Apache-2.0
"""Weights in folders and the lists of parameters made of them."""

import json

import numpy as np
import pytest
import torch
import tvm_ffi
from tvm.runtime.vm import VirtualMachine


def builtin(name):
    return tvm_ffi.get_global_func("vm.builtin." + name)


@pytest.fixture(autouse=True)
def empty():
    builtin("tensor_cache.clear")()
    yield
    builtin("tensor_cache.clear")()


A = np.arange(6, dtype="float32").reshape(2, 3)
B = np.array([1, -2], "int8")
C = np.array([1.5, -0.1, 3e38], "float32")
C_HALF = torch.from_numpy(C).to(torch.bfloat16)


def record(name, array, offset, nbytes, fmt="raw"):
    shape, dtype = list(array.shape), array.dtype.name
    return dict(name=name, shape=shape, dtype=dtype, format=fmt, nbytes=nbytes, byteOffset=offset)


def write(folder, change=lambda records: None):
    half = C_HALF.view(torch.int16).numpy().tobytes()
    (folder / "params_shard_0.bin").write_bytes(A.tobytes() + B.tobytes())
    (folder / "params_shard_1.bin").write_bytes(half)
    records = [
        {
            "dataPath": "params_shard_0.bin",
            "format": "raw-shard",
            "nbytes": 26,
            "records": [record("param_0", A, 0, 24), record("param_1", B, 24, 2)],
        },
        {
            "dataPath": "params_shard_1.bin",
            "format": "raw-shard",
            "nbytes": 6,
            "records": [record("c", C, 0, 6, "f32-to-bf16")],
        },
    ]
    change(records)
    (folder / "tensor-cache.json").write_text(json.dumps({"metadata": {}, "records": records}))


def test_load(tmp_path):
    write(tmp_path)
    builtin("tensor_cache.load")(str(tmp_path), 1, 0)
    get = builtin("tensor_cache.get")
    np.testing.assert_array_equal(get("param_0").numpy(), A)
    np.testing.assert_array_equal(get("param_1").numpy(), B)
    np.testing.assert_array_equal(get("c").numpy(), C_HALF.float().numpy())
    assert get("d") is None
    for name, args in [
        ("param_array_from_cache", ("param", -1)),
        ("param_array_from_cache", ("param", 2)),
        ("param_array_from_cache_by_name", (["param_0", "param_1"],)),
        ("param_array_from_cache_by_name_unpacked", ("param_0", "param_1")),
    ]:
        params = builtin(name)(*args)
        assert [p.shape for p in params] == [(2, 3), (2,)]


def test_update_and_remove():
    update, get = builtin("tensor_cache.update"), builtin("tensor_cache.get")
    update("a", A, False)
    with pytest.raises(ValueError, match="there is a tensor 'a' already"):
        update("a", B, False)
    np.testing.assert_array_equal(get("a").numpy(), A)
    update("a", B, True)
    np.testing.assert_array_equal(get("a").numpy(), B)
    builtin("tensor_cache.remove")("a")
    assert get("a") is None
    with pytest.raises(ValueError, match="no tensor 'p_0'"):
        builtin("param_array_from_cache")("p", 1)


def set_field(shard, index, key, value):
    def change(records):
        where = records[shard] if index is None else records[shard]["records"][index]
        if value is None:
            del where[key]
        else:
            where[key] = value

    return change


@pytest.mark.parametrize(
    "change, message",
    [
        (set_field(0, 0, "byteOffset", 3), "expected 24 bytes at byte 3 of a file of 26"),
        (set_field(0, 0, "byteOffset", -1), "expected 24 bytes at byte -1"),
        (set_field(0, 0, "nbytes", 20), "expected 24 bytes"),
        (set_field(0, 0, "shape", [2**40, 2**40]), "tensor"),
        (set_field(0, 0, "shape", [-1]), "extents of at least 0"),
        (set_field(0, 0, "name", None), "expected the field 'name'"),
        (set_field(0, None, "dataPath", "../x"), "a file inside the folder, got '../x'"),
        (set_field(0, None, "dataPath", "/x"), "a file inside the folder"),
        (set_field(1, None, "dataPath", "missing"), "cannot read .*missing"),
    ],
)
def test_damaged_folders_change_nothing(tmp_path, change, message):
    write(tmp_path, change)
    with pytest.raises((ValueError, MemoryError, FileNotFoundError), match=message):
        builtin("tensor_cache.load")(str(tmp_path), 1, 0)
    assert builtin("tensor_cache.get")("param_0") is None


def test_index_must_be_json(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"tensor-cache.json"):
        builtin("tensor_cache.load")(str(tmp_path), 1, 0)
    (tmp_path / "tensor-cache.json").write_text("[1]")
    with pytest.raises(ValueError, match="to be a JSON object"):
        builtin("tensor_cache.load")(str(tmp_path), 1, 0)


def test_parameters_from_a_module():
    from tvm import runtime
    from tvm.relax.exec_builder import ExecBuilder

    ib = ExecBuilder()
    with ib.function("main", num_inputs=3):
        ib.emit_call("vm.builtin.make_tuple", args=[ib.r(0), ib.r(1), ib.r(2)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    vm = VirtualMachine(ib.get(), runtime.cpu())
    builtin("tensor_cache.update")("p_0", A, False)
    builtin("tensor_cache.update")("p_1", B, False)
    for module in (
        builtin("param_module_from_cache")("p", -1),
        builtin("param_module_from_cache_by_name")(["p_0", "p_1"]),
    ):
        vm.set_input("main", C, module)
        vm.invoke_stateful("main")
        results = [value.numpy() for value in vm.get_outputs("main")]
        for result, expected in zip(results, (C, A, B), strict=True):
            np.testing.assert_array_equal(result, expected)
