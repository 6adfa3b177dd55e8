# SPDX-License-Identifier: Apache-2.0
"""A machine without LLVM: everything but its target works, with C as the host code generator."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def run(*command):
    env = {**os.environ, "TVM_WITHOUT_LLVM": "1"}
    env.pop("TVM_TEST_TARGET", None)
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=env, capture_output=True, text=True, timeout=600
    )


PROGRAM = """
import numpy as np
import tvm
from tvm import te

assert not tvm.runtime.enabled("llvm")
A = te.placeholder((8,), name="A")
func = te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1, name="B")])
mod = tvm.build(func)
assert mod.kind == "c"
a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
mod(a, b)
np.testing.assert_array_equal(b, a + 1)
try:
    tvm.build(func, target="llvm")
except RuntimeError as error:
    assert "expected the llvm backend (libtvm_llvm.so)" in str(error)
else:
    raise AssertionError("built for llvm")
"""


def test_default_target_is_c():
    result = run("-c", PROGRAM)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "tests",
    [
        ["tests/test_tiny.py", "tests/te/test_compile.py", "tests/error/test_bad_calls.py"],
        ["tests/backend/host/test_control.py", "tests/backend/host/test_memory.py"],
        ["tests/expr/test_math.py", "-k", "two_arguments or round_once"],
        [
            "tests/schedule/test_default_rules_inputs.py",
            "tests/schedule/primitive/test_rolling_buffer.py",
            "tests/schedule/primitive/test_read_at.py",
            "-k",
            "(test_types and float32) or booleans or compiled or compiles",
        ],
        ["tests/tune/test_tune_tir.py", "-k", "best_schedule_is_found"],
    ],
    ids=["whole", "kernels", "math", "schedule", "tune"],
)
def test_numeric_tests_pass(tests):
    result = run("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert result.returncode == 0 and " passed" in result.stdout, result.stdout[-4000:]
