# SPDX-License-Identifier: Apache-2.0
"""Weights in a folder: `tensor-cache.json` and shards of bytes, which programs in C++ read by
`vm.builtin.tensor_cache.load`, and pages of the web by tvmjs."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import tvm_ffi

from . import _tensor
from .device import Device

_INDICES = ("tensor-cache.json", "ndarray-cache.json")  # the second is of versions before 0.21
_AS_BF16 = "f32-to-bf16"
_MB = 1 << 20


def _encode(name, value, encode_format):
    """(record, bytes)"""
    import numpy as np

    fmt = encode_format
    if not isinstance(fmt, str):
        fmt = fmt.get(name, fmt.get("*", "raw"))
    if fmt not in (_AS_BF16, "raw"):
        raise ValueError(
            f"dump_tensor_cache: expected the format f32-to-bf16 or raw for '{name}', got {fmt!r}"
        )
    array = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
    dtype = str(value.dtype) if hasattr(value, "numpy") else array.dtype.name
    if fmt == _AS_BF16 and dtype == "float32":
        content = array.astype(_tensor._numpy_dtype("bfloat16")).tobytes()
    else:
        fmt, content = "raw", array.tobytes()
    shape = [int(n) for n in value.shape]
    return dict(name=name, shape=shape, dtype=dtype, format=fmt, nbytes=len(content)), content


def _shard_path(folder, name):
    if os.path.isabs(name) or ".." in name.replace(os.sep, "/").split("/"):
        raise ValueError(f"tensor cache: expected a file inside the folder {folder}, got '{name}'")
    return os.path.join(folder, name)


class _Shards:
    """What the folder holds, and the shard that is not yet full."""

    def __init__(self, folder, cap, records):
        self.folder, self.cap, self.shards = folder, cap, records
        self.waiting, self.content = [], bytearray()
        self.at = {r["name"]: (shard, r) for shard in records for r in shard["records"]}

    def add(self, record, content):
        if record["name"] in self.at:
            return self._replace(record, content)
        if len(content) >= self.cap:  # a shard of its own
            return self._write([record | {"byteOffset": 0}], content)
        if len(self.content) + len(content) > self.cap:
            self.flush()
        record["byteOffset"] = len(self.content)
        self.waiting.append(record)
        self.content += content

    def flush(self):
        if self.waiting:
            self._write(self.waiting, self.content)
            self.waiting, self.content = [], bytearray()

    def _write(self, records, content):
        path = f"params_shard_{len(self.shards)}.bin"
        with open(os.path.join(self.folder, path), "wb") as file:
            file.write(content)
        self.shards.append(
            {
                "dataPath": path,
                "format": "raw-shard",
                "nbytes": len(content),
                "records": records,
                "md5sum": hashlib.md5(content).hexdigest(),
            }
        )

    def _replace(self, record, content):
        shard, old = self.at[record["name"]]
        if old["nbytes"] != len(content):
            raise ValueError(
                f"dump_tensor_cache: expected {old['nbytes']} bytes for '{old['name']}', which the "
                f"folder holds already, got {len(content)}"
            )
        with open(_shard_path(self.folder, shard["dataPath"]), "r+b") as file:
            file.seek(old["byteOffset"])
            file.write(content)
            file.seek(0)
            shard["md5sum"] = hashlib.md5(file.read()).hexdigest()
        old.update(record)


def _write_index(folder, name, index):
    """The whole file or, if something fails, the one that was there."""
    path = os.path.join(folder, name)
    with open(path + ".new", "w") as file:
        json.dump(index, file, indent=4)
    os.replace(path + ".new", path)


def _as_stored(record):
    if record["format"] == _AS_BF16:
        record = record | {"dtype": "bfloat16", "format": "raw"}
    return record


def dump_tensor_cache(
    params: Mapping[str, Any] | Iterable[tuple[str, Any]],
    cache_dir: str | os.PathLike[str],
    encode_format: str | Mapping[str, str] = _AS_BF16,
    meta_data: Any = None,
    shard_cap_mb: int = 32,
    show_progress: bool = True,
    update_if_exists: bool = False,
) -> None:
    """Writes tensors into a folder.

    Parameters
    ----------
    params : {name: tensor or array}, or pairs of them.
    encode_format : "f32-to-bf16", which stores float32 as bfloat16, or "raw", or {name: either},
        where "*" stands for all other names.
    meta_data : what JSON can say, or a function that returns it.
    shard_cap_mb : how large a file becomes; larger tensors have one of their own.
    show_progress : prints what was written.
    update_if_exists : tensors that the folder has are replaced in their place, others added; else
        the folder is written anew.
    """
    os.makedirs(cache_dir, exist_ok=True)
    index = {"metadata": {}, "records": []}
    if update_if_exists and any(os.path.exists(os.path.join(cache_dir, n)) for n in _INDICES):
        index = _read_index(cache_dir)[1]
    shards = _Shards(cache_dir, shard_cap_mb * _MB, index["records"])
    for name, value in params.items() if isinstance(params, Mapping | tvm_ffi.Map) else params:
        shards.add(*_encode(str(name), value, encode_format))
    shards.flush()
    if meta_data is not None:
        index["metadata"] = meta_data() if callable(meta_data) else meta_data
    _write_index(cache_dir, _INDICES[0], index)
    stored = [s | {"records": [_as_stored(r) for r in s["records"]]} for s in index["records"]]
    if stored != index["records"]:
        _write_index(cache_dir, "tensor-cache-b16.json", index | {"records": stored})
    if show_progress:
        count = sum(len(shard["records"]) for shard in index["records"])
        size = sum(shard["nbytes"] for shard in index["records"]) / _MB
        print(f"{count} tensors, {size:.1f} MB in {len(index['records'])} files of {cache_dir}")


def _read_index(path):
    """(folder, index) of a folder or of an index."""
    path = os.fspath(path)
    if os.path.isdir(path):
        files = [os.path.join(path, name) for name in _INDICES]
        path = next(filter(os.path.exists, files), files[0])
    with open(path, encoding="utf-8") as file:
        try:
            index = json.load(file)
        except ValueError as e:
            raise ValueError(f"load_tensor_cache: expected JSON in {path}: {e}") from None
    if not isinstance(index, dict) or not isinstance(index.get("records"), list):
        raise ValueError(f"load_tensor_cache: expected a list 'records' in {path}")
    return os.path.dirname(path), index


def _decode(record, content):
    import numpy as np

    dtype, begin = _tensor._numpy_dtype(record["dtype"]), record["byteOffset"]
    stored = np.dtype("uint16") if record["format"] == _AS_BF16 and dtype == "float32" else dtype
    count = int(np.prod(record["shape"], dtype="int64"))
    if begin < 0 or begin + count * stored.itemsize > len(content):
        raise ValueError(
            f"load_tensor_cache: '{record['name']}': expected {count * stored.itemsize} bytes at "
            f"byte {begin} of a file of {len(content)}"
        )
    array = np.frombuffer(content, stored, count, begin)
    if stored != dtype:
        array = (array.astype("uint32") << 16).view(dtype)
    return array.reshape(record["shape"])


def load_tensor_cache(
    cachepath: str | os.PathLike[str], device: Device
) -> tuple[dict[str, _tensor.Tensor], Any]:
    """({name: tensor}, metadata) of a folder that dump_tensor_cache wrote, or of its index."""
    folder, index = _read_index(cachepath)
    tensors = {}
    for shard in index["records"]:
        with open(_shard_path(folder, shard["dataPath"]), "rb") as file:
            content = file.read()
        for record in shard["records"]:
            tensors[record["name"]] = _tensor.tensor(_decode(record, content), device)
    return tensors, index.get("metadata")


# Until 0.20.
dump_ndarray_cache, load_ndarray_cache = dump_tensor_cache, load_tensor_cache
