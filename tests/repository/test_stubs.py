# SPDX-License-Identifier: Apache-2.0
"""Editors and type checkers see the names that derive from the registry."""

import ast
import importlib
import pathlib
import shutil
import subprocess
import sys

import pytest
import tvm

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts/stubs.py"
USER = """
import tvm
from tvm import arith, tir

loop = tir.For(tir.Var("i", "int32"), 0, 8, 0, tir.Evaluate(0))
reveal_type(loop.body)
reveal_type(tir.transform.UnrollLoop())
reveal_type(arith.detect_linear_equation)
tir.transform.UnrolLoop()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the package and its stubs."""
    folder = tmp_path_factory.mktemp("site")
    ignore = shutil.ignore_patterns("lib", "include", "__pycache__", "*.pyi")
    shutil.copytree(pathlib.Path(tvm.__file__).parent, folder / "tvm", ignore=ignore)
    subprocess.run([sys.executable, str(SCRIPT), str(folder / "tvm")], check=True)
    return folder


@pytest.mark.parametrize("name", ["arith", "ir", "tir", "te", "tir/transform", "meta_schedule"])
def test_a_stub_has_the_names_of_its_module(site, name):
    module = importlib.import_module("tvm." + name.replace("/", "."))
    tree = ast.parse((site / "tvm" / name / "__init__.pyi").read_text())
    bound = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    bound |= {a.asname for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    bound |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    bound |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets}
    public = {n for n in dir(module) if n[0] != "_"}
    foreign = {n for n in public if getattr(module, n, None).__class__.__name__ == "module"}
    assert public - foreign <= bound


@pytest.mark.slow
def test_mypy_reads_the_stubs(site, tmp_path):
    mypy = pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(USER)
    command = [sys.executable, "-m", mypy.__name__, "--cache-dir", str(tmp_path), "user.py"]
    env = {"MYPYPATH": str(site), "PATH": ""}
    run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    said = [line for line in run.stdout.splitlines() if line.startswith("user.py")]
    assert [line.split(": ", 1)[1] for line in said] == [
        'note: Revealed type is "tvm.tir.stmt.Stmt"',
        'note: Revealed type is "tvm.ir.transform.Pass"',
        'note: Revealed type is "def (expr: tvm.ir.expr.PrimExpr | float, var_list: '
        'typing.Sequence[tvm.tir.expr.Var]) -> typing.Sequence[tvm.ir.expr.PrimExpr]"',
        'error: Module has no attribute "UnrolLoop"; maybe "UnrollLoop"?  [attr-defined]',
    ], run.stdout
