# SPDX-License-Identifier: Apache-2.0
"""Executables as one file: written, loaded elsewhere, run; their constants are mapped."""

import os
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
    assert address % 64 == 0
    for line in open("/proc/self/maps"):
        begin, end = (int(word, 16) for word in line.split()[0].split("-"))
        if begin <= address < end:
            assert line.rstrip().endswith("model.so")
            break
    else:
        pytest.fail("the constant lies nowhere")


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
    import json

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
