# SPDX-License-Identifier: Apache-2.0
"""Who may use whom: the order of the parts, and every exception from it.

`structure.py` verifies it for includes, for functions called by their registered names, and for
imports of the Python package.
"""

import ast
import re

# A part of the core may use itself and the parts before it.
PARTS = (
    "runtime ir expr arith tir te topi schedule tune relax frontend script backend driver"
).split()

# Registered functions that parts call although their owner comes later, or is Python: names end
# with a dot where they are the beginning of several.
CALLS_UPWARD = {
    "runtime": {
        "cuda.nvrtc_compile": "one binary of many kernels, where the compiler is there",
        "runtime.dtype_of_foreign_object": "types of other libraries are known to Python",
        "runtime.run_signal_handlers": "Ctrl-C is Python's where there is Python",
        "runtime.write_stdout": "Python may have put another stream in the place of stdout",
    },
    "ir": {
        "ir.warn": "Python's logging",
        "target.build.": "a backend's generator, by the kind of its row",
        "target.codegen.llvm_get_cpu_features": "LLVM has the tables of processors",
        "target.llvm.host_cpu": "LLVM has the tables of processors",
    },
    "tir": {"script._repr": "errors show programs"},
    "schedule": {
        "script._print_underlined": "errors show programs",
        "script._repr": "errors show programs",
    },
    "tune": {
        "driver.Build": "candidates are built",
        "driver.ExportLibrary": "candidates are loaded by the process that measures",
        "meta_schedule._intrin_extents": "intrinsics are written in TVMScript",
        "meta_schedule._rvv_intrinsics": "intrinsics are written in TVMScript",
        "meta_schedule._tensor_core_groups": "intrinsics are written in TVMScript",
        "meta_schedule.predict": "cost models are Python's",
        "script._repr": "records hold programs as text",
        "support.libinfo": "records hold the version",
        "tir.pipeline.default": "candidates are told apart by what they become",
    },
    "driver": {"support.libinfo": "facts about a build are written by its build files"},
    "relax": {
        "driver.Build": "constants are folded by running code",
        "tvm.relax.te_grad._register.": "gradients of tensor expressions are the users'",
    },
    "backend": {
        "tvm_callback_cuda_compile": "users compile CUDA's text their own way",
        "tvm_callback_cuda_postproc": "users change CUDA's text",
    },
}

# A module of the package may import those before it.
PACKAGE = (
    "_libs libinfo _aliases error base _scriptable _derive runtime support rpc ir target transform "
    "arith tir te script topi relax relay frontend contrib dlight meta_schedule driver testing"
).split()
IMPORTS_UPWARD = {
    "_scriptable": {"runtime": "the printer's options", "script": "programs print themselves"},
    "dlight": {"meta_schedule": "rules can be used in a search"},
    "ir": {
        "relax": "a call of a function is of its caller's language",
        "target": "virtual devices have targets",
        "tir": "operators make TIR expressions",
    },
    "relax": {
        "dlight": "pipelines for GPUs schedule kernels",
        "meta_schedule": "pipelines apply what was tuned",
    },
    "runtime": {"support": "exporting runs compilers", "target": "devices by target"},
    "script": {"relax": "graphs are written in TVMScript"},
    "support": {"target": "tools ask for targets"},
    "tir": {"driver": "tvm.tir.build", "script": "intrinsics are written in TVMScript"},
}

_DEFINED = re.compile(r'\b(?:Def|SetGlobal)\(\s*"([^"]+)"')
_PASS = re.compile(r"\bTVM_PASS(?:_AFTER)?\(\s*(\w+),\s*(\w+)")
_RELAX_PASS = re.compile(r"\bTVM_RELAX\w*_PASS\(\s*(\w+)")
_PYTHON_DEFINED = re.compile(r'register_(?:global_)?func\(\s*"([^"]+)"')
_CALLED = re.compile(r'\bGetGlobal(?:Required)?\(\s*"([^"]+)"')
_PASS_CALLED = re.compile(r'\bGetPass\(\s*"([^"]+)"')


def defined_names(suffix, text):
    """Names that a source registers; those of passes as GetPass takes them."""
    if suffix == ".py":
        yield from _PYTHON_DEFINED.findall(text)
    elif suffix in (".cc", ".h"):
        yield from _DEFINED.findall(text)
        yield from (f"{part}.{name}" for part, name in _PASS.findall(text))
        yield from (f"relax.{name}" for name in _RELAX_PASS.findall(text))


def called_names(text):
    """(offset, name) of the registered functions and passes that a C++ source calls."""
    for pattern in (_CALLED, _PASS_CALLED):
        for match in pattern.finditer(text):
            yield match.start(1), match.group(1)


def may_call(part, name, owners):
    """Why a part of the core may not call a registered name, or None."""
    allowed = CALLS_UPWARD.get(part, {})
    if name in allowed or name.startswith("ffi."):
        return None
    owner = owners.get(name)
    if owner is None:
        return f"{name}: expected a registered name, or one in scripts/layers.py"
    if owner in PARTS and PARTS.index(owner) <= PARTS.index(part):
        return None
    return f"{part} may not call {name} of {owner}: scripts/layers.py"


def imported_units(path, text):
    """(line, unit) of what a module of the package imports of it, or uses as an attribute of tvm.

    `path` is that of the file below python/tvm.
    """
    package = list(path.parent.parts)
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[1:] for alias in node.names if _is_ours(alias.name)]
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0 and not _is_ours(node.module):
                continue
            module = node.module.split(".") if node.module else []
            base = module[1:] if node.level == 0 else package[: len(package) - node.level + 1]
            base = base if node.level == 0 else base + module
            names = [base] if base else [[alias.name] for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = [[node.attr]] if node.value.id == "tvm" else []
        for name in names:
            if name and name[0] in PACKAGE:
                yield node.lineno, name[0]


def _is_ours(module):
    return module == "tvm" or module.startswith("tvm.")


def may_import(unit, other):
    """Whether a unit of the package may import another one."""
    if unit == other or unit not in PACKAGE:
        return True
    return PACKAGE.index(other) < PACKAGE.index(unit) or other in IMPORTS_UPWARD.get(unit, {})
