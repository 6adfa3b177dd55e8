# SPDX-License-Identifier: Apache-2.0
"""Mistakes in the first lines that people write: what was expected, what came, what to do."""

import os
import pickle
import sys

import numpy as np
import pytest
import tvm
from tvm import meta_schedule as ms
from tvm import relax, te, tir
from tvm.__main__ import main


def kernel():
    A = te.placeholder((4,), name="A")
    return te.create_prim_func([A, te.compute((4,), lambda i: A[i] * 2.0, name="B")])


def graph():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 4), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.op.nn.relu(x)))
    return bb.get()


CASES = {
    "a graph that nobody compiled": (
        lambda: relax.VirtualMachine(graph(), tvm.cpu()),
        TypeError,
        "expected what tvm.compile makes of a graph, .* got IRModule",
    ),
    "the path of a library for a machine": (
        lambda: relax.VirtualMachine("model.so", tvm.cpu()),
        TypeError,
        "what tvm.runtime.load_module reads from a library, got str",
    ),
    "a kernel for a machine": (
        lambda: relax.VirtualMachine(tvm.compile(kernel(), "c"), tvm.cpu()),
        ValueError,
        "expected a compiled graph, got a library of functions",
    ),
    "parameters as a list": (
        lambda: relax.build(graph(), "c", params=[1]),
        TypeError,
        "expected params as a dictionary from names to tensors, got list",
    ),
    "a number as a pipeline of graphs": (
        lambda: tvm.compile(graph(), "c", relax_pipeline=3),
        TypeError,
        "relax_pipeline: expected a name, a pass, .* got int",
    ),
    "a number as a pipeline of kernels": (
        lambda: tvm.compile(kernel(), "c", tir_pipeline=3),
        TypeError,
        "tir_pipeline: expected a name, a pass, .* got int",
    ),
    "a number as the page": (
        lambda: tvm.compile(graph(), "c", explain=3),
        TypeError,
        "expected explain to be a bool or the path of a page, got 3",
    ),
    "half an extent": (
        lambda: tvm.runtime.empty((3.5,)),
        TypeError,
        "'float' object cannot be interpreted as an integer",
    ),
    "a tensor of nothing": (
        lambda: tvm.runtime.tensor(None),
        TypeError,
        "expected numbers, got NoneType",
    ),
    "another file": (
        lambda: tvm.runtime.load_module("model.xyz"),
        ValueError,
        r"expected a file that ends in .so, .* got 'model.xyz'",
    ),
    "an option of export that there is not": (
        lambda: tvm.compile(kernel(), "c").export_library("m.so", param_file="p"),
        TypeError,
        "expected options of the linker, .* got 'param_file'",
    ),
    "functions as a list": (
        lambda: tvm.IRModule([kernel()]),
        TypeError,
        "expected a dictionary from names to functions, got list",
    ),
    "nothing to parse": (
        lambda: tvm.script.from_source(None),
        TypeError,
        "expected a text, a function or a class to parse, got NoneType",
    ),
    "a kernel tuned as a graph": (
        lambda: ms.relax_integration.extract_tasks(kernel(), "llvm"),
        TypeError,
        "got PrimFunc; tune_tir takes PrimFuncs",
    ),
    "a compiled program in a pickle": (
        lambda: pickle.dumps(tvm.compile(kernel(), "c")),
        TypeError,
        "cannot be pickled; export_library writes it to a file",
    ),
    "a processor as a target": (
        lambda: tvm.target.Target("cpu"),
        ValueError,
        "got 'cpu', did you mean 'llvm'",
    ),
    "a graphics card as a target": (
        lambda: tvm.target.Target("gpu"),
        ValueError,
        "got 'gpu', did you mean 'cuda'",
    ),
    "a target in capitals": (
        lambda: tvm.target.Target("LLVM"),
        ValueError,
        "got 'LLVM', did you mean 'llvm'",
    ),
    "a text as the number of cores": (
        lambda: tvm.target.Target({"kind": "llvm", "num-cores": "four"}),
        TypeError,
        "expected an integer for option 'num-cores', got str",
    ),
    "NumPy's class as a type": (
        lambda: tvm.runtime.empty((3,), np.float32),
        TypeError,
        "expected DataType, got ffi.Function; write its name, such as 'float32'",
    ),
    "passes without parentheses": (
        lambda: tvm.transform.Sequential([relax.transform.LegalizeOps]),
        TypeError,
        r"expected Array\[transform.Pass\], got ffi.Array with ffi.Function",
    ),
    "a symbolic dimension as a text": (
        lambda: relax.TensorStructInfo(("n", 4), "float32"),
        TypeError,
        r"write tvm.tir.Var\(name, 'int64'\)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_mistake(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, kind, message = CASES[name]
    with pytest.raises(kind, match=message):
        make()
    assert os.listdir(tmp_path) == []


def test_a_misspelt_primitive(capsys):
    with pytest.raises(AttributeError) as caught:
        tir.Schedule(kernel()).reordr()
    sys.__excepthook__(caught.type, caught.value, caught.tb)
    assert "Did you mean: 'reorder'?" in capsys.readouterr().err


def test_export_replaces_nothing_but_files(tmp_path):
    code = tvm.compile(kernel(), "llvm")
    with pytest.raises(OSError, match="which is a folder"):
        code.export_library(str(tmp_path))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="which is no regular file"):
        code.export_library(str(pipe))
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["model.onnx", "model.pt2", "model.pt"])
def test_a_file_that_is_no_model_is_named(name, tmp_path):
    path = tmp_path / name
    path.write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(ValueError, match=rf"in {path}") as caught:
        tvm.compile(str(path))
    assert name.endswith(".pt2") or "is it a whole ONNX model?" in str(caught.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["explain", "nothere.onnx"], "no such file: nothere.onnx"),
        (["explain", "nothere.onnx", "--report", "nothere/x.html"], "the folder of explain="),
        (["verify", "nothere.onnx", "--shape", "x=-2,4"], "expected name=2,3,4, got 'x=-2,4'"),
        (["verify", "nothere.onnx", "--memory", "-1"], "a number of gigabytes above 0, got '-1'"),
    ],
)
def test_commands_say_the_reason_alone(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TVM_FULL_BACKTRACE", raising=False)
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert message in str(caught.value) + capsys.readouterr().err
