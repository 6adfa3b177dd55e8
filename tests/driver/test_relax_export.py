# SPDX-License-Identifier: Apache-2.0
"""Executables as one file: written, loaded elsewhere, run; their constants are mapped."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tvm
from tvm import relax

SIZE = 256
X = np.random.default_rng(0).standard_normal((3, SIZE), "float32")
WEIGHT = np.random.default_rng(1).standard_normal((SIZE, SIZE), "float32")


@pytest.fixture(scope="module")
def model():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((tvm.tir.Var("n", "int64"), SIZE), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(relax.op.matmul(x, relax.const(WEIGHT)))
            out = bb.emit_output(relax.op.nn.relu(relax.op.add(y, relax.const(1.5))))
        bb.emit_func_output(out)
    with bb.function("weight", []):
        bb.emit_func_output(relax.const(WEIGHT))
    return tvm.compile(bb.get(), "llvm")


def check(library, expected=None):
    vm = relax.VirtualMachine(library, tvm.cpu())
    expected = np.maximum(X @ WEIGHT + 1.5, 0) if expected is None else expected
    np.testing.assert_allclose(vm["main"](X).numpy(), expected, rtol=1e-4, atol=1e-4)
    return vm


def mapped_file(address):
    """The file that is mapped there."""
    for line in open("/proc/self/maps"):
        begin, end = (int(word, 16) for word in line.split()[0].split("-"))
        if begin <= address < end:
            return pathlib.Path(line.split(maxsplit=5)[-1].rstrip())
    return None


@pytest.mark.parametrize("suffix", ["so", "tar", "a", "o"])
def test_every_form_comes_back(model, tmp_path, suffix):
    path = tmp_path / f"model.{suffix}"
    model.export_library(path)
    check(tvm.runtime.load_module(path))


def test_from_memory(model, tmp_path):
    model.export_library(tmp_path / "model.so")
    check(tvm.runtime.load_module((tmp_path / "model.so").read_bytes()))


def test_a_fresh_process_runs_it(model, tmp_path):
    model.export_library(tmp_path / "model.so")
    np.save(tmp_path / "x.npy", X)
    program = """if True:
        import numpy as np, tvm
        from tvm import relax
        vm = relax.VirtualMachine(tvm.runtime.load_module("model.so"), tvm.cpu())
        np.save("y.npy", vm["main"](np.load("x.npy")).numpy())
    """
    env = {**os.environ, "PYTHONPATH": os.path.dirname(tvm.__path__[0])}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, env=env)
    here = relax.VirtualMachine(model, tvm.cpu())["main"](X).numpy()
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), here)


def test_constants_are_mapped_not_copied(model, tmp_path):
    model.export_library(tmp_path / "model.so")
    vm = check(tvm.runtime.load_module(tmp_path / "model.so"))
    weight = vm["weight"]()
    np.testing.assert_array_equal(weight.numpy(), WEIGHT)
    address = np.from_dlpack(weight).ctypes.data
    assert mapped_file(address) == tmp_path / "model.so" and address % 64 == 0


def test_constants_outlive_the_module(model, tmp_path):
    model.export_library(tmp_path / "model.so")
    weight = relax.VirtualMachine(tvm.runtime.load_module(tmp_path / "model.so"), tvm.cpu())[
        "weight"
    ]()
    np.testing.assert_array_equal(weight.numpy(), WEIGHT)


def test_a_constant_can_be_written_to(model, tmp_path):
    """It is memory like any other: the file stays as it is."""
    model.export_library(tmp_path / "model.so")
    before = (tmp_path / "model.so").read_bytes()
    vm = check(tvm.runtime.load_module(tmp_path / "model.so"))
    vm["weight"]().copyfrom(np.zeros_like(WEIGHT))
    np.testing.assert_array_equal(vm["weight"]().numpy(), 0)
    assert (tmp_path / "model.so").read_bytes() == before


def test_writing_takes_no_memory_for_the_weights(tmp_path):
    """They go from where they lie to the file; the largest are beyond the reach of code."""
    program = """if True:
        import numpy as np, tvm
        from tvm import relax

        def peak():
            return next(int(s.split()[1]) for s in open("/proc/self/status") if "VmHWM" in s) * 1024

        weight = np.arange(32 << 20, dtype="float32")
        bb = relax.BlockBuilder()
        with bb.function("main", []):
            bb.emit_func_output(relax.const(weight))
        executable = tvm.compile(bb.get(), "llvm")
        executable.export_library("other.so", params_file="other.safetensors")  # code is loaded
        open("/proc/self/clear_refs", "w").write("5")  # the peak is what is used now
        before = peak()
        executable.export_library("model.so")
        assert peak() - before < weight.nbytes // 4, (peak() - before, weight.nbytes)
        loaded = relax.VirtualMachine(tvm.runtime.load_module("model.so"), tvm.cpu())["main"]()
        np.testing.assert_array_equal(loaded.numpy(), weight)
    """
    env = {**os.environ, "PYTHONPATH": os.path.dirname(tvm.__path__[0])}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, env=env)


# ---- parameters in a file of their own ----------------------------------------------------------
def test_parameters_beside_the_library(model, tmp_path):
    library, params = tmp_path / "model.so", tmp_path / "model.safetensors"
    model.export_library(library, params_file=params)
    assert params.stat().st_size > WEIGHT.nbytes > library.stat().st_size
    vm = check(tvm.runtime.load_module(library))
    weight = vm["weight"]()
    np.testing.assert_array_equal(weight.numpy(), WEIGHT)
    address = np.from_dlpack(weight).ctypes.data
    assert mapped_file(address) == params and address % 64 == 0
    vm["weight"]().copyfrom(np.zeros_like(WEIGHT))  # in this process alone
    np.testing.assert_array_equal(
        relax.VirtualMachine(tvm.runtime.load_module(library), tvm.cpu())["weight"]().numpy(),
        WEIGHT,
    )


def test_others_read_the_parameters(tmp_path):
    """The format: a length, JSON, and tensors without gaps."""
    arrays = [np.arange(n, dtype=t) for n, t in ((300, "float32"), (2001, "int8"), (257, "int64"))]
    bb = relax.BlockBuilder()
    with bb.function("main", []):
        bb.emit_func_output(relax.Tuple([relax.const(a) for a in arrays]))
    params = tmp_path / "model.safetensors"
    executable = tvm.compile(bb.get(), "llvm")
    executable.export_library(tmp_path / "model.so", params_file=params)
    data = params.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, data = json.loads(data[8 : 8 + length]), data[8 + length :]
    del header["__metadata__"]
    offsets = sorted(entry["data_offsets"] for entry in header.values())
    assert [begin for begin, _ in offsets] == [0, *(end for _, end in offsets[:-1])]
    assert offsets[-1][1] == len(data)
    for i, (array, dtype) in enumerate(zip(arrays, ("F32", "I8", "I64"), strict=True)):
        entry = header[f"constant_{i}"]
        assert entry["dtype"] == dtype and entry["shape"] == list(array.shape)
        assert data[slice(*entry["data_offsets"])] == array.tobytes()
    vm = relax.VirtualMachine(tvm.runtime.load_module(tmp_path / "model.so"), tvm.cpu())
    for ours, array in zip(vm["main"](), arrays, strict=True):
        np.testing.assert_array_equal(ours.numpy(), array)


def test_wrong_parameters(model, tmp_path):
    library, params = tmp_path / "model.so", tmp_path / "model.safetensors"
    model.export_library(library, params_file=params)
    whole = params.read_bytes()
    for data, message in (
        (whole[:4], "no safetensors file"),
        (b"\xff" * 64, "no safetensors file"),
        (b"\2" + bytes(7) + b"{}", "another header"),
        (whole.replace(b'"tvm_id":"', b'"tvm_id":"0', 1), "those of another one: id 0"),
        (whole[: len(whole) // 2], "outside of"),
    ):
        params.write_bytes(data)
        with pytest.raises(ValueError, match=message):
            tvm.runtime.load_module(library)
    other = tmp_path / "other.so"
    bb = relax.BlockBuilder()
    with bb.function("main", []):
        bb.emit_func_output(relax.const(WEIGHT + 1))
    tvm.compile(bb.get(), "llvm").export_library(other, params_file=params)
    with pytest.raises(ValueError, match="got those of another one: id"):
        tvm.runtime.load_module(library)
    params.unlink()
    with pytest.raises(FileNotFoundError, match="model.safetensors"):
        tvm.runtime.load_module(library)
    with pytest.raises(ValueError, match="its parameters lie in the file 'model.safetensors'"):
        tvm.runtime.load_module(library.read_bytes())
    for file in ("x.a", "x.tar", "else/x.so"):
        (tmp_path / "else").mkdir(exist_ok=True)
        with pytest.raises(ValueError, match="a file of parameters in its folder"):
            model.export_library(tmp_path / file, params_file=params)


def test_a_program_without_kernels(tmp_path):
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(relax.Tuple([x, relax.const(WEIGHT)]))
    tvm.compile(bb.get(), "llvm").export_library(tmp_path / "data.so")
    vm = relax.VirtualMachine(tvm.runtime.load_module(tmp_path / "data.so"), tvm.cpu())
    np.testing.assert_array_equal(vm["main"](np.ones(4, "float32"))[1].numpy(), WEIGHT)


def test_another_loader_is_told_what_is_missing(model, tmp_path):
    import tvm_ffi

    model.export_library(tmp_path / "model.so")
    library = tvm_ffi.load_module(str(tmp_path / "model.so"))
    with pytest.raises(ValueError, match="load it with tvm.runtime.load_module"):
        relax.VirtualMachine(library, tvm.cpu())


def test_what_goes_in_and_comes_out_is_known(model, tmp_path):
    model.export_library(tmp_path / "model.so")
    vm = relax.VirtualMachine(tvm.runtime.load_module(tmp_path / "model.so"), tvm.cpu())
    assert json.loads(vm["get_function_signature"]("main")) == {
        "inputs": [{"name": "x", "kind": "tensor", "dtype": "float32", "shape": ["n", SIZE]}],
        "outputs": [
            {"name": "output_0", "kind": "tensor", "dtype": "float32", "shape": ["n", SIZE]}
        ],
    }


def test_damaged_data(model, tmp_path):
    model.export_library(tmp_path / "model.so")
    whole = (tmp_path / "model.so").read_bytes()
    with pytest.raises(ValueError, match="truncated"):
        tvm.runtime.load_module(whole[: len(whole) // 2])
