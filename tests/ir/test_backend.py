# SPDX-License-Identifier: Apache-2.0
"""Rows of code generators: loading, errors, and one that is added."""

import os
import subprocess
import sys

import pytest
import tvm

PROGRAM = """
import tvm
from tvm import te

A = te.placeholder((8,), name="A")
func = te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1, name="B")])
"""


def run(program, **env):
    """Rows last as long as a process: one of its own for each."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM + program],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_library_that_cannot_be_loaded_is_named_with_the_cause(tmp_path):
    broken = tmp_path / "libbroken.so"
    broken.write_text("this is no library")
    out = run(
        f"""
tvm.target.register_backend("test", is_host=True, library={str(broken)!r})
try:
    tvm.build(func, "test")
except ImportError as error:
    print(error)
"""
    )
    assert f"expected to load the test backend from {broken}, got" in out
    assert "invalid ELF header" in out or "file too short" in out


def test_a_library_that_is_missing():
    out = run(
        """
tvm.target.register_backend("test", is_host=True, library="libnowhere.so")
assert not tvm.target.load_backend("test")
try:
    tvm.build(func, "test")
except RuntimeError as error:
    print(error)
"""
    )
    assert (
        "expected the test backend (libnowhere.so) for target test, which is not installed" in out
    )


def test_final_passes_run_before_the_generator():
    out = run(
        """
@tvm.tir.transform.prim_func_pass(opt_level=0, name="Spy")
def spy(func, mod, ctx):
    return func

tvm.target.register_backend("test", is_host=True, final_passes=["tir.RemoveNoOp"])

@tvm.instrument.pass_instrument
class Names:
    names = []
    def run_before_pass(self, mod, info):
        self.names.append(str(info.name))

@tvm.register_global_func("target.build.test")
def generate(mod, target):
    print(Names.names[-2:], target.kind.name)
    return tvm.target.codegen.build_module(mod, "c")

with tvm.transform.PassContext(instruments=[Names()]):
    tvm.build(func, "test")
"""
    )
    assert out.splitlines()[0] == "['tir.CombineContextCall', 'tir.RemoveNoOp'] test"


def test_a_kind_has_one_row():
    with pytest.raises(ValueError, match="expected a kind without a backend, got 'c'"):
        tvm.target.register_backend("c")
    with pytest.raises(ValueError, match="expected the name of a target kind, got 'lvm'"):
        tvm.target.register_backend("lvm")


def test_a_kind_without_a_generator():
    with pytest.raises(RuntimeError, match="it has no code generator for kind hexagon"):
        tvm.target.codegen.build_module(tvm.IRModule({}), "hexagon")


@pytest.mark.parametrize("kind, env", [("llvm", {}), ("c", {"TVM_WITHOUT_LLVM": "1"})])
def test_the_default_host_is_the_first_that_is_installed(kind, env):
    if kind == "llvm" and not tvm.runtime.enabled("llvm"):
        pytest.skip("LLVM is not installed")
    assert run("print(tvm.target.default_host().kind.name)", **env).strip() == kind
