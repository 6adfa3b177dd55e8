# SPDX-License-Identifier: Apache-2.0
"""The C++ of the page on adding to the compiler compiles, loads and does what the page says."""

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


@pytest.mark.slow
def test_the_page_compiles_and_runs(tmp_path):
    text = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```cpp\n(.*?)^```$", text, re.M | re.S)
    source, library = tmp_path / "demo.cc", tmp_path / "libdemo.so"
    source.write_text(INCLUDES + "".join(blocks) + "}\n")
    folders = [ROOT / "src", ROOT / "include", *tvm_ffi.libinfo.include_paths()]
    ours = tvm.libinfo.find_lib_path("libtvm.so")[0]
    command = ["c++", "-std=c++20", "-O0", "-w", "-shared", "-fPIC", source, ours, "-o", library]
    command += [f"-I{folder}" for folder in folders]
    subprocess.run(command, check=True)
    program = tmp_path / "use.py"
    program.write_text(USE)
    command = [sys.executable, program, library, ours]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
