# SPDX-License-Identifier: Apache-2.0
"""The C++ of pages compiles, loads and does what they say."""

import pathlib
import re
import subprocess
import sys

import pytest
import tvm
import tvm.libinfo
import tvm_ffi

ROOT = pathlib.Path(__file__).parents[2]
INCLUDES = """
#include <algorithm>
#include "tvm/ir/transform.h"
#include "tvm/schedule/primitive.h"
#include "tvm/tir/stmt_functor.h"
namespace tvm::tir {
"""
# Names are attached when the package is imported; what comes later is in the registry.
USE = """
import ctypes, sys
import tvm
from tvm.script import tir as T
library = ctypes.PyDLL(sys.argv[1])
assert ctypes.PyDLL(sys.argv[2])["__tvm_ffi_Init"](None, None, 0, None) == 0

assert tvm.get_global_func("demo.twice")(4) == 8

@T.prim_func
def before(A: T.Buffer((8, 4), "int32")):
    for i, j in T.grid(8, 4):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            assert vi < 8, "inside"
            A[vi, vj] = 1

after = tvm.get_global_func("tir.transform.RemoveAssert")()(tvm.IRModule({"main": before}))
assert "assert" not in after.script() and "A[vi, vj] = 1" in after.script()

sch = tvm.tir.Schedule(before)
loops = tvm.get_global_func("tir.Schedule.get_loops_inside_out")(sch, sch.get_block("A"))
assert [str(sch.get(loop).loop_var) for loop in loops] == ["j", "i"]
"""


# The graph in C++ is that of the builder and of the script.
SAME_GRAPH = """
make_in_cpp = tvm.get_global_func("demo.perceptron")
tvm.ir.assert_structural_equal(make_in_cpp(), mod)
"""
LOADED = """
import ctypes, sys
import tvm
library = ctypes.PyDLL(sys.argv[1])
assert ctypes.PyDLL(sys.argv[2])["__tvm_ffi_Init"](None, None, 0, None) == 0
"""
REGISTERED = """
TVM_REGISTER() { ::tvm::Def("demo.perceptron", &::tvm::relax::Perceptron, ""); }
"""


def blocks(page, language):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def run(source, use, folder):
    """Compiles the source into a library that the program `use` loads."""
    file, library, program = folder / "demo.cc", folder / "libdemo.so", folder / "use.py"
    file.write_text(source)
    includes = [ROOT / "src", ROOT / "include", *tvm_ffi.libinfo.include_paths()]
    ours = tvm.libinfo.find_lib_path("libtvm.so")[0]
    command = ["c++", "-std=c++20", "-O0", "-w", "-shared", "-fPIC", file, ours, "-o", library]
    subprocess.run([*command, *(f"-I{include}" for include in includes)], check=True)
    program.write_text(use)
    done = subprocess.run([sys.executable, program, library, ours], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_adding_to_the_compiler(tmp_path):
    run(INCLUDES + "".join(blocks("extending.md", "cpp")) + "}\n", USE, tmp_path)


@pytest.mark.slow
def test_a_graph(tmp_path):
    (cpp,), python = blocks("relax.md", "cpp"), "".join(blocks("relax.md", "python")[:2])
    run(cpp + REGISTERED, LOADED + python + SAME_GRAPH, tmp_path)
