# SPDX-License-Identifier: Apache-2.0
"""Disks without room and folders that cannot be made: an error or nothing, never a crash."""

import os
import subprocess
import sys

import pytest
import tvm

PROGRAM = """
import os, resource
import numpy as np, tvm
from tvm import relax, te

A = te.placeholder((8,), name="A")
kernel = tvm.compile(te.create_prim_func([A, te.compute((8,), lambda i: A[i] * 2.0)]), "llvm")
x = relax.Var("x", relax.TensorStructInfo((2, 4), "float32"))
bb = relax.BlockBuilder()
with bb.function("main", [x]):
    bb.emit_func_output(bb.emit(relax.op.nn.relu(x)))
graph = bb.get()
"""


def run(program, folder, **environment):
    if not tvm.runtime.enabled("llvm"):
        pytest.skip("the linker is part of the LLVM backend")
    command = [sys.executable, "-c", PROGRAM + program]
    # The package that is being tested, from another folder.
    path = os.path.dirname(tvm.__path__[0])
    env = {**os.environ, "PYTHONPATH": path, **environment}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


@pytest.mark.parametrize("suffix", ["so", "tar"])
def test_a_library_that_does_not_fit_is_an_error(suffix, tmp_path):
    """A limit of the size of files stands for a disk that is full."""
    program = """
kernel.export_library("model.o")
limit = os.path.getsize("model.o") + 100  # room for an object, and for no more
os.remove("model.o"), os.remove("model.h")
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    kernel.export_library("model.SUFFIX")
except OSError as error:
    print("cannot write" in str(error))
"""
    assert run(program.replace("SUFFIX", suffix), tmp_path) == "True\n"
    assert os.listdir(tmp_path) == []


def test_a_cache_that_cannot_be_made_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("no folder")
    program = """
machine = relax.VirtualMachine(tvm.compile(graph, "llvm"), tvm.cpu())
print(machine["main"](-np.ones((2, 4), "float32")).numpy().sum())
"""
    cache = str(tmp_path / "file" / "cache")
    assert run(program, tmp_path, TVM_CACHE_DIR=cache) == "0.0\n"
