# SPDX-License-Identifier: Apache-2.0
"""Models run by programs without Python: those of examples/, and the command line."""

import json
import os
import pathlib
import runpy
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax

ROOT = pathlib.Path(__file__).parents[2]
LIBRARIES = pathlib.Path(tvm._libs.find("tvm_runtime")).parent
FFI = pathlib.Path(tvm_ffi.libinfo.find_libtvm_ffi()).parent
WEIGHT = np.random.default_rng(0).standard_normal((64, 10), "float32")
C_FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"]
EXPECTED = np.maximum(np.ones((1, 64), "float32") @ WEIGHT, 0)[0, 0]


def graph():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((tvm.tir.Var("n", "int64"), 64), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(relax.op.nn.relu(relax.op.matmul(x, relax.const(WEIGHT))))
        bb.emit_func_output(out)
    return bb.get()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.so"
    tvm.compile(graph(), "llvm").export_library(path)
    return path


@pytest.fixture
def build_example(tmp_path):
    def build(source, compiler, *options, objects=()):
        if shutil.which(compiler) is None:
            pytest.skip(f"no {compiler}")
        program = tmp_path / "program"
        includes = [ROOT / "include", *tvm_ffi.libinfo.include_paths()]
        command = [compiler, *options, "-o", program, ROOT / source, *objects]
        command += [f"-I{path}" for path in includes]
        for folder in (LIBRARIES, FFI):
            command += [f"-L{folder}", f"-Wl,-rpath,{folder}"]
        subprocess.run([*command, "-ltvm_runtime", "-ltvm_ffi", "-pthread"], check=True)
        return program

    return build


def run(program, *arguments):
    """With an empty environment: nothing of Python can help."""
    command = [str(word) for word in (program, *arguments)]
    return subprocess.run(command, env={}, capture_output=True, text=True)


def first_element(text):
    return float(text.split("first element ")[1].split()[0])


def test_a_c_program(build_example, model):
    program = build_example("examples/c/run_model.c", "cc", "-std=c11", "-Wall", "-Werror")
    result = run(program, model)
    assert result.returncode == 0, result.stderr
    assert "input x (n, 64)" in result.stdout and "output output_0 (n, 10)" in result.stdout
    assert first_element(result.stdout) == pytest.approx(EXPECTED, rel=1e-4)
    result = run(program, "gone.so")
    assert result.returncode == 1 and "gone.so" in result.stderr


def test_a_cpp_program(build_example, model):
    program = build_example(
        "examples/cpp/run_model.cc", "c++", "-std=c++20", "-Wno-invalid-offsetof"
    )
    result = run(program, model)
    assert result.returncode == 0, result.stderr
    assert first_element(result.stdout) == pytest.approx(EXPECTED, rel=1e-4)


def test_a_cpp_program_runs_what_a_users_backend_built(build_example, tmp_path):
    """The kernels of examples/backend are in the library: neither it nor the compiler is needed."""
    program = build_example(
        "examples/cpp/run_model.cc", "c++", "-std=c++20", "-Wno-invalid-offsetof"
    )
    dense = runpy.run_path(str(ROOT / "examples/backend/dense.py"))
    dense["main"](str(tmp_path / "model.so"))
    result = run(program, tmp_path / "model.so")
    assert result.returncode == 0, result.stderr
    _, (w1, b1, w2, b2) = dense["network"](np.random.default_rng(0))
    expected = np.maximum(np.ones((2, 64), "float32") @ w1 + b1, 0) @ w2 + b2
    assert first_element(result.stdout) == pytest.approx(expected[0, 0], rel=1e-4)


def test_two_threads_share_a_model(build_example, model, tmp_path):
    """Results have the bits of the virtual machine's. scripts/sanitize_runtime.sh finds races."""
    program = build_example("tests/driver/model_threads.c", "cc", *C_FLAGS)
    result = run(program, model, tmp_path / "y")
    assert result.returncode == 0, result.stderr
    x = (np.arange(8 * 64) % 7 - 3).astype("float32").reshape(8, 64)
    vm = relax.VirtualMachine(tvm.runtime.load_module(model), tvm.cpu())
    assert (tmp_path / "y").read_bytes() == vm["main"](x).numpy().tobytes()


# ---- hooks, and models that are linked in --------------------------------------------------------
HOOKS_USED = """ValueError: TVMModelSetThreadPool: expected at least one thread, got 0
ValueError: TVMModelSetAllocator: free: expected a pointer, got NULL
log: twice
allocations 1, tasks 1, refused -1
"""


def build_twice(**options):
    """Prints, and gives 2 * x + w, with enough work for two threads and constants worth mapping."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((256, 256), "float32"))
    row = relax.const(np.broadcast_to(np.arange(256, dtype="float32"), (256, 256)).copy())
    with bb.function("main", [x], attrs={"relax.force_pure": True}):
        bb.emit(relax.op.print(format="twice"))
        y = bb.emit(relax.op.add(relax.op.multiply(x, relax.const(2, "float32")), row))
        bb.emit_func_output(y)
    return relax.build(bb.get(), "llvm -num-cores=2", **options)


def test_memory_threads_and_log_of_the_program(build_example, tmp_path):
    build_twice().export_library(tmp_path / "model.so")
    program = build_example("tests/driver/model_hooks.c", "cc", *C_FLAGS)
    result = run(program, tmp_path / "model.so")
    assert (result.returncode, result.stdout) == (0, HOOKS_USED), result.stderr


@pytest.mark.parametrize("suffix", ["o", "a"])
def test_a_model_that_registers_itself(build_example, tmp_path, suffix):
    """Linked in whole, it needs no call: system_lib=True."""
    file = tmp_path / f"model.{suffix}"
    build_twice(system_lib=True).export_library(file)
    objects = ["-Wl,--whole-archive", file, "-Wl,--no-whole-archive"]
    program = build_example("tests/driver/model_hooks.c", "cc", *C_FLAGS, objects=objects)
    result = run(program)
    assert (result.returncode, result.stdout) == (0, HOOKS_USED), result.stderr


def test_a_model_that_its_header_registers(build_example, tmp_path):
    build_twice().export_library(tmp_path / "model.a")
    (tmp_path / "start.c").write_text("""#include "model.h"
    __attribute__((constructor)) static void Start(void) { model_register(); }""")
    objects = [tmp_path / "start.c", tmp_path / "model.a"]
    program = build_example("tests/driver/model_hooks.c", "cc", *C_FLAGS, objects=objects)
    result = run(program)
    assert (result.returncode, result.stdout) == (0, HOOKS_USED), result.stderr


def test_a_program_with_no_model_in_it(build_example):
    program = build_example("tests/driver/model_hooks.c", "cc", *C_FLAGS)
    result = run(program)
    assert result.returncode == 1 and "expected an executable" in result.stderr


# ---- the command line ----------------------------------------------------------------------------
@pytest.fixture(scope="module")
def program():
    for folder in (LIBRARIES.parent / "bin", LIBRARIES / "bin"):
        if os.access(folder / "tvm", os.X_OK):
            return folder / "tvm"
    pytest.skip("the program tvm is not built")


def test_compile_run_and_look(program, tmp_path):
    (tmp_path / "module.json").write_text(tvm.ir.save_json(graph()))
    library = tmp_path / "model.so"
    result = run(program, "compile", tmp_path / "module.json", "-o", library, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["output"] == str(library)

    x = np.random.default_rng(1).standard_normal((3, 64), "float32")
    np.save(tmp_path / "x.npy", x)
    result = run(program, "run", library, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path)
    assert result.returncode == 0, result.stderr
    expected = np.maximum(x @ WEIGHT, 0)
    np.testing.assert_allclose(np.load(tmp_path / "output_0.npy"), expected, rtol=1e-4, atol=1e-5)

    params = tmp_path / "beside.safetensors"
    words = ["compile", tmp_path / "module.json", "-o", tmp_path / "beside.so", "--params", params]
    assert run(program, *words).returncode == 0 and params.exists()
    assert run(program, "run", tmp_path / "beside.so").returncode == 0
    measured = json.loads(run(program, "bench", library, "--dim", "n=4", "--json").stdout)
    assert measured["median_ms"] > 0
    shaped = run(program, "run", library, "--shape", "x=5,64", "--json")
    assert json.loads(shaped.stdout)["outputs"][0]["value"] == "float32(5, 10)"
    assert "matmul" in run(program, "profile", library).stdout
    described = json.loads(run(program, "inspect", library, "--json").stdout)
    assert described["functions"]["main"]["inputs"][0]["name"] == "x"
    assert "ret" in run(program, "inspect", library, "--code").stdout


def test_compile_of_an_archive(program, tmp_path):
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(8, 4).eval()
    x = torch.randn(2, 8)
    torch.export.save(torch.export.export(layer, (x,)), tmp_path / "m.pt2")
    result = run(program, "compile", tmp_path / "m.pt2", "-o", tmp_path / "m.so")
    assert result.returncode == 0, result.stderr
    np.save(tmp_path / "x.npy", x.numpy())
    words = ["run", tmp_path / "m.so", "--input", f"input={tmp_path / 'x.npy'}", "-o", tmp_path]
    result = run(program, *words)
    assert result.returncode == 0, result.stderr
    expected = layer(x).detach().numpy()
    np.testing.assert_allclose(np.load(tmp_path / "output_0.npy"), expected, rtol=1e-4, atol=1e-5)


@pytest.fixture
def archive(tmp_path):
    """A .pt2 file, and its first result of ones."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layer, batch = torch.nn.Linear(8, 4).eval(), torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(layer, (torch.randn(2, 8),), dynamic_shapes=({0: batch},))
    torch.export.save(exported, tmp_path / "m.pt2")
    return tmp_path / "m.pt2", layer(torch.ones(8))[0].item()


def test_an_archive_runs_at_once(program, archive, tmp_path):
    path, expected = archive
    np.save(tmp_path / "x.npy", np.ones((3, 8), "float32"))
    result = run(program, "run", path, "--input", f"input={tmp_path / 'x.npy'}", "-o", tmp_path)
    assert result.returncode == 0, result.stderr
    found = np.load(tmp_path / "output_0.npy")
    assert found.shape == (3, 4) and found[2, 0] == pytest.approx(expected, rel=1e-4)
    measured = run(program, "bench", path, "--json")
    assert measured.returncode == 0 and json.loads(measured.stdout)["median_ms"] > 0
    assert "1 x aten.linear.default" in run(program, "inspect", path).stdout
    assert "ret" in run(program, "inspect", path, "--code").stdout


def test_a_cpp_program_that_imports_an_archive(build_example, archive, tmp_path):
    path, expected = archive
    flags = ["-std=c++20", "-Wall", "-Werror"]
    program = build_example("examples/cpp/run_archive.cc", "c++", *flags, objects=["-ltvm"])
    result = run(program, path, 3, 8)
    assert result.returncode == 0, result.stderr
    # The program prints six decimals.
    assert first_element(result.stdout) == pytest.approx(expected, rel=1e-4, abs=1e-6)
    result = run(program, path, 3, 9)
    assert result.returncode == 1 and "expected 8, got 9" in result.stderr
    result = run(program, tmp_path / "gone.pt2")
    assert result.returncode == 1 and "gone.pt2" in result.stderr


def test_an_onnx_file_runs_at_once(program, tmp_path):
    """All commands that run a library compile a model first, without Python."""
    onnx = pytest.importorskip("onnx")
    helper, path = onnx.helper, tmp_path / "m.onnx"
    shape = {"elem_type": onnx.TensorProto.FLOAT, "shape": ["n", 64]}
    made = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", **shape)],
        [helper.make_tensor_value_info("y", **shape | {"shape": ["n", 10]})],
        [onnx.numpy_helper.from_array(WEIGHT, "w")],
    )
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)]), path)
    np.save(tmp_path / "x.npy", np.ones((1, 64), "float32"))
    result = run(program, "run", path, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path)
    assert result.returncode == 0, result.stderr
    assert np.load(tmp_path / "output_0.npy")[0, 0] == pytest.approx(EXPECTED, rel=1e-4)
    measured = json.loads(run(program, "bench", path, "--dim", "n=4", "--json").stdout)
    assert measured["median_ms"] > 0
    assert "matmul" in run(program, "profile", path).stdout
    assert "1 x MatMul" in run(program, "inspect", path).stdout


def test_one_command_for_both_programs(program):
    """`tvm`, as it is installed: what needs no Python is done by the native program."""

    def command(*words):
        words = [sys.executable, "-m", "tvm", *words]
        return subprocess.run(words, capture_output=True, text=True, cwd="/")

    assert command("--help").stdout == run(program, "--help").stdout
    assert "explain" in command("--help").stdout
    assert "--tolerance" in command("verify", "--help").stdout
    assert "did you mean 'compile'" in command("compil", "m.onnx").stderr


def test_help_and_errors(program, model, tmp_path):
    assert "inspect" in run(program, "--help").stdout
    assert run(program, "help").stdout == run(program, "--help").stdout
    for words in (["bench", "--help"], ["help", "bench"]):
        assert "--repeat" in run(program, *words).stdout
    assert run(program, "--version").stdout == f"tvm {tvm.__version__}\n"
    (tmp_path / "text.json").write_text("no module")
    assert json.loads(run(program, "info", "--json").stdout)["threads"] >= 1
    for words, message in (
        (["fly"], "unknown command 'fly'; tvm --help lists them"),
        (["info", model], "info: expected options only, got '"),
        (["compile", tmp_path / "text.json", "-o", "m.so"], "text.json: expected a model (.onnx"),
        (["compile", tmp_path / "text.json", "-o", "gone/m.so"], "the folder of 'gone/m.so'"),
        (
            ["compile", model, "-o", "m.xyz"],
            "one of .so, .dylib, .dll, .o, .obj, .a, .c, .tar, got 'm.xyz'",
        ),
        (["compile", model, "-o", "m"], "expected a file that ends in one of .so,"),
        (["bench", model, "--repaet=3"], "unknown option '--repaet', did you mean '--repeat'"),
        (["bench", model, "--repeat", "many"], "--repeat: expected a number"),
        (["run", model, "--input", "y=x.npy"], "there is no input 'y'"),
        (["run", model, "--dim", "n=few"], "--dim: expected a number of at least 0, got 'few'"),
        (["run", model, "--dim", "m=2"], "--dim: no input of 'main' has an extent 'm'"),
        (["run", model, "--shape", "z=2,2"], "--shape: there is no input 'z'"),
        (["run", model, "--shape", "x=2"], "--shape: the input 'x' has 2 dimensions, got 1"),
        (["run", model, "--shape", "x=2,two"], "--shape: expected a number of at least 0"),
        (
            ["run", model, "--shape", "x=2,64", "--dim", "n=3"],
            "--shape: dimension 0 of the input 'x' is 'n', which is 3 elsewhere, got 2",
        ),
        (["verify", "m.onnx", "--shape", "x=1"], "verify: needs Python with the package tvm"),
        (["run", model, "--device", "cpu:first"], "--device: expected a number of at least 0"),
        (["run", tmp_path / "gone.so"], "gone.so"),
        (["compile", model], "(.onnx, .pt2) or a module that was saved as JSON, and -o model.so"),
    ):
        result = run(program, *words)
        assert result.returncode == 1 and message in result.stderr, words
