# SPDX-License-Identifier: Apache-2.0
"""Modules under the names of neighbouring versions."""

import importlib
import pkgutil
import subprocess
import sys

import pytest
import tvm  # noqa: F401  modules whose names are made on first use are below it
from tvm import te, tir
from tvm._aliases import KEYWORDS_OF

# In a process of its own: what is imported there stays out of the other tests.
PROGRAM = """
import importlib
import types
import tvm
from tvm._aliases import MODULES

for alias in MODULES:
    parent, _, name = alias.rpartition(".")
    package = importlib.import_module(parent)
    before = getattr(package, name, None)
    importlib.import_module(alias)
    assert isinstance(before, types.ModuleType | None) or getattr(package, name) is before, alias
print(len(MODULES))
"""


def test_importing_a_module_hides_no_function():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert result.returncode == 0 and int(result.stdout) > 100, result.stderr


COPIES = """
import tvm.tirx.transform
import tvm.topi.cpp.vision
from tvm import tir, topi

assert tvm.topi.cpp.vision is topi.vision and topi.vision.__name__ == "tvm.topi.vision"
assert tvm.tirx.transform is tir.transform
assert topi.vision.get_valid_counts
"""


def test_modules_below_an_alias_are_those_of_its_package():
    subprocess.run([sys.executable, "-c", COPIES], check=True)


# A name of each that is made on first use.
STARS = {
    "tvm.arith": "deduce_bound",
    "tvm.relax": "BlockBuilder",
    "tvm.relax.analysis": "free_vars",
    "tvm.relax.op": "add",
    "tvm.relax.op.nn": "relu",
    "tvm.relax.transform": "LegalizeOps",
    "tvm.te": "max",
    "tvm.tir": "PrimFunc",
    "tvm.tir.transform": "Simplify",
    "tvm.topi": "exp",
}


@pytest.mark.parametrize("module", STARS)
def test_a_star_imports_what_is_made_on_first_use(module):
    names = {}
    exec(f"from {module} import *", names)
    assert names[STARS[module]] is getattr(sys.modules[module], STARS[module])
    package = sys.modules[module]
    below = {m.name for m in pkgutil.iter_modules(package.__path__)}
    public = {n for n in dir(package) if n[:1] != "_" and n not in below}
    assert not public - set(names), "every other name, too"


@pytest.mark.parametrize("name", KEYWORDS_OF)
def test_keywords_of_functions_by_either_name(name):
    function = getattr(importlib.import_module("tvm." + name.split(".")[0]), name.split(".")[1])
    dtype = {"fmod": "float32", "logical_not": "bool"}.get(function.__name__, "int32")
    is_tensor = name.startswith("topi")
    # Two of them: their texts differ where they change places.
    operands = [
        te.placeholder((2,), dtype, name=v) if is_tensor else tir.Var(v, dtype) for v in "vw"
    ]
    theirs = dict(zip(KEYWORDS_OF[name], operands, strict=False))
    ours = dict(zip(KEYWORDS_OF[name].values(), operands, strict=False))
    results = [function(**theirs), function(**ours)]
    if is_tensor:
        results = [result.op.body[0] for result in results]
    assert str(results[0]) == str(results[1])
