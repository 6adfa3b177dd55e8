# SPDX-License-Identifier: Apache-2.0
"""Saving and loading named tensors, and data that must be refused."""

import struct

import ml_dtypes
import numpy as np
import pytest
import tvm
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tvm import runtime

PARAMS = {
    "weight": np.arange(6, dtype="float32").reshape(2, 3),
    "bf": np.array([1, 2.5], ml_dtypes.bfloat16),
    "nibbles": np.array([1, -2, 3], ml_dtypes.int4),
    "scalar": np.array(7, "int64"),
    "none": np.zeros((0, 4), "float16"),
    "ü": np.array([True]),
}


def check(loaded):
    assert list(loaded) == list(PARAMS)
    for name, value in PARAMS.items():
        array = loaded[name].numpy()
        assert array.dtype == value.dtype and array.shape == value.shape
        assert array.tobytes() == value.tobytes()


def test_round_trip():
    data = runtime.save_param_dict(PARAMS)
    assert isinstance(data, bytearray)
    check(runtime.load_param_dict(data))
    check(runtime.load_param_dict(bytes(data)))
    assert runtime.load_param_dict(runtime.save_param_dict({})) == {}


def test_views_are_saved_dense():
    t = runtime.tensor(np.arange(9).reshape(3, 3))
    loaded = runtime.load_param_dict(runtime.save_param_dict({"column": t[:, 1]}))
    assert loaded["column"].numpy().tolist() == [1, 4, 7]


def test_file_round_trip(tmp_path):
    path = tmp_path / "model.params"
    runtime.save_param_dict_to_file(PARAMS, path)
    check(runtime.load_param_dict_from_file(path))
    assert path.read_bytes() == bytes(runtime.save_param_dict(PARAMS))
    assert [p.name for p in tmp_path.iterdir()] == ["model.params"]


def test_layout():
    """Other programs read these files."""
    data = bytes(runtime.save_param_dict({"w": np.array([5], "int32")}))
    expected = struct.pack("<QQQQ", 0xF7E58D4F05049CB7, 0, 1, 1) + b"w" + struct.pack("<Q", 1)
    expected += struct.pack("<QQiiiBBHqqi", 0xDD5E40F096B4A13F, 0, 1, 0, 1, 0, 32, 1, 1, 4, 5)
    assert data == expected


def test_file_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        runtime.load_param_dict_from_file(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="gone"):
        runtime.save_param_dict_to_file(PARAMS, tmp_path / "gone" / "p")
    with pytest.raises(OSError):
        runtime.load_param_dict_from_file(tmp_path)
    old = tmp_path / "old"
    old.mkdir()
    with pytest.raises(OSError, match="cannot write"):
        runtime.save_param_dict_to_file(PARAMS, old)
    assert [p.name for p in tmp_path.iterdir()] == ["old"]


def test_every_truncation_is_refused():
    data = bytes(runtime.save_param_dict(PARAMS))
    for length in range(len(data)):
        with pytest.raises(ValueError, match="load_param_dict: "):
            runtime.load_param_dict(data[:length])


def one(**change):
    """The bytes of one tensor with some fields replaced."""
    fields = dict(
        magic=0xF7E58D4F05049CB7, names=1, length=1, count=1, tensor=0xDD5E40F096B4A13F,
        ndim=1, code=0, bits=32, lanes=1, extent=1, nbytes=4, tail=b"",
    )  # fmt: skip
    f = {**fields, **change}
    data = (
        struct.pack("<QQQQ", f["magic"], 0, f["names"], f["length"])
        + b"w"
        + struct.pack("<Q", f["count"])
    )
    data += struct.pack("<QQiii", f["tensor"], 0, 1, 0, f["ndim"])
    data += struct.pack("<BBHqqi", f["code"], f["bits"], f["lanes"], f["extent"], f["nbytes"], 5)
    return data + f["tail"]


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(magic=1), "expected saved parameters, got something else"),
        (dict(names=1 << 60), "the number of names is 1152921504606846976, more than"),
        (dict(length=1 << 63), "the length of a name is 9223372036854775808, more than"),
        (dict(count=2), "expected 1 tensors, got 2"),
        (dict(tensor=7), "tensor 'w': expected the header of a tensor"),
        (dict(ndim=-1), "tensor 'w': expected a rank from 0 to 64, got -1"),
        (dict(ndim=1 << 30), "expected a rank from 0 to 64"),
        (dict(bits=0), "tensor 'w': unknown dtype"),
        (dict(code=3), "tensor 'w': unknown dtype"),
        (dict(nbytes=8), "tensor 'w': expected 4 bytes, got 8"),
        (dict(extent=1 << 40, nbytes=1 << 42), "tensor 'w': its data is truncated"),
        (dict(extent=-1), "expected extents of at least 0"),
        (dict(tail=b"x"), "1 bytes follow the last tensor"),
    ],
)
def test_damaged_fields_are_named(change, message):
    assert list(runtime.load_param_dict(one())) == ["w"]
    with pytest.raises(ValueError, match=message):
        runtime.load_param_dict(one(**change))


def test_names_that_occur_twice():
    data = bytes(runtime.save_param_dict({"a": np.zeros(1, "int8"), "b": np.zeros(1, "int8")}))
    with pytest.raises(ValueError, match="the name 'a' occurs twice"):
        runtime.load_param_dict(data.replace(b"b", b"a"))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 200), st.binary(min_size=1, max_size=8))
@example(136, b"\x1f")  # float31
def test_random_damage_never_crashes(at, replacement):
    data = bytearray(runtime.save_param_dict(PARAMS))
    data[at : at + len(replacement)] = replacement
    try:
        runtime.load_param_dict(data)
    except (ValueError, MemoryError, UnicodeDecodeError):
        pass


def test_old_spelling_of_the_function():
    assert tvm.runtime.load_param_dict is runtime.params.load_param_dict
