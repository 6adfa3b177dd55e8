# SPDX-License-Identifier: Apache-2.0
"""Weights written to a folder and read again, by us and by the functions of C++."""

import hashlib
import json

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm.contrib import tvmjs

PARAMS = {
    "wide": np.linspace(-3, 3, 6, dtype="float32").reshape(2, 3),
    "bytes": np.array([1, -2, 3], "int8"),
    "half": np.ones((2, 2), "float16"),
    "brain": np.arange(3).astype(ml_dtypes.bfloat16),
    "scalar": np.array(7, "int64"),
    "none": np.zeros((0, 4), "float32"),
    "large": np.arange(400_000, dtype="float32"),
}
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4e38], "float32")


def as_bf16(array):
    return array.astype(ml_dtypes.bfloat16).astype("float32")


def written(folder, **options):
    tvmjs.dump_tensor_cache(PARAMS, str(folder), show_progress=False, **options)
    return json.loads((folder / "tensor-cache.json").read_text())


@pytest.mark.parametrize("encode_format", ["raw", "f32-to-bf16", {"large": "f32-to-bf16"}])
def test_what_is_written_is_read(encode_format, tmp_path):
    index = written(tmp_path, encode_format=encode_format, meta_data={"x": 1}, shard_cap_mb=1)
    tensors, metadata = tvmjs.load_tensor_cache(str(tmp_path), tvm.cpu())
    assert metadata == {"x": 1} and list(sorted(tensors)) == sorted(PARAMS)
    for shard in index["records"]:
        content = (tmp_path / shard["dataPath"]).read_bytes()
        assert len(content) == shard["nbytes"]
        assert hashlib.md5(content).hexdigest() == shard["md5sum"]
    load, get = (tvm_ffi.get_global_func(f"vm.builtin.tensor_cache.{f}") for f in ("load", "get"))
    load(str(tmp_path), 1, 0)
    for name, array in PARAMS.items():
        halved = encode_format == "f32-to-bf16" or name in encode_format
        expected = as_bf16(array) if halved and array.dtype == "float32" else array
        for got in (tensors[name], get(name)):
            assert got.dtype == array.dtype.name
            np.testing.assert_array_equal(got.numpy(), expected)
    tvm_ffi.get_global_func("vm.builtin.tensor_cache.clear")()


def test_rounding(tmp_path):
    tvmjs.dump_tensor_cache(iter([("x", tvm.runtime.tensor(SPECIAL))]), tmp_path)
    got = tvmjs.load_tensor_cache(tmp_path / "tensor-cache.json", tvm.cpu())[0]["x"].numpy()
    np.testing.assert_array_equal(got, as_bf16(SPECIAL))
    assert np.signbit(got[3])
    stored, _ = tvmjs.load_tensor_cache(tmp_path / "tensor-cache-b16.json", tvm.cpu())
    assert stored["x"].dtype == "bfloat16"


def test_shards(tmp_path):
    index = written(tmp_path, encode_format="raw", shard_cap_mb=1)
    names = [[r["name"] for r in shard["records"]] for shard in index["records"]]
    assert names == [["large"], [n for n in PARAMS if n != "large"]]
    many = {f"p{i}": np.zeros(100_000, "float32") for i in range(5)}
    tvmjs.dump_tensor_cache(many, tmp_path, "raw", shard_cap_mb=1)
    index = json.loads((tmp_path / "tensor-cache.json").read_text())
    assert [len(shard["records"]) for shard in index["records"]] == [2, 2, 1]


def test_update(tmp_path):
    written(tmp_path, meta_data={"x": 1})
    tvmjs.dump_tensor_cache(
        {"half": np.full((2, 2), 5, "float16"), "new": np.ones(3, "int32")},
        tmp_path,
        update_if_exists=True,
    )
    tensors, metadata = tvmjs.load_tensor_cache(tmp_path, tvm.cpu())
    assert metadata == {"x": 1} and len(tensors) == len(PARAMS) + 1
    np.testing.assert_array_equal(tensors["half"].numpy(), np.full((2, 2), 5, "float16"))
    np.testing.assert_array_equal(tensors["bytes"].numpy(), PARAMS["bytes"])
    before = (tmp_path / "tensor-cache.json").read_text()
    with pytest.raises(ValueError, match="expected 8 bytes for 'half', which .* got 2"):
        tvmjs.dump_tensor_cache({"half": np.ones(1, "float16")}, tmp_path, update_if_exists=True)
    assert (tmp_path / "tensor-cache.json").read_text() == before


def test_the_name_of_old_versions(tmp_path):
    tvmjs.dump_ndarray_cache(PARAMS, tmp_path, meta_data=lambda: [1])
    (tmp_path / "tensor-cache.json").rename(tmp_path / "ndarray-cache.json")
    assert tvmjs.load_ndarray_cache(tmp_path, tvm.cpu())[1] == [1]


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="expected the format f32-to-bf16 or raw for 'wide'"):
        written(tmp_path, encode_format="f16")
    with pytest.raises(FileNotFoundError, match="tensor-cache.json"):
        tvmjs.load_tensor_cache(tmp_path, tvm.cpu())
    index = written(tmp_path)
    for path in ("/etc/passwd", "../x"):
        index["records"][0]["dataPath"] = path
        (tmp_path / "tensor-cache.json").write_text(json.dumps(index))
        with pytest.raises(ValueError, match="expected a file inside the folder"):
            tvmjs.load_tensor_cache(tmp_path, tvm.cpu())
        with pytest.raises(ValueError, match="expected a file inside the folder"):
            tvmjs.dump_tensor_cache(PARAMS, tmp_path, update_if_exists=True)
    index = written(tmp_path)
    (tmp_path / index["records"][0]["dataPath"]).write_bytes(b"x")
    with pytest.raises(ValueError, match="expected .* bytes at byte 0 of a file of 1"):
        tvmjs.load_tensor_cache(tmp_path, tvm.cpu())
    (tmp_path / "tensor-cache.json").write_text("{")
    with pytest.raises(ValueError, match="expected JSON in"):
        tvmjs.load_tensor_cache(tmp_path, tvm.cpu())
    for text in ("[]", "{}"):
        (tmp_path / "tensor-cache.json").write_text(text)
        with pytest.raises(ValueError, match="expected a list 'records'"):
            tvmjs.load_tensor_cache(tmp_path, tvm.cpu())
