# SPDX-License-Identifier: Apache-2.0
"""The repository rules find what they are about, and nothing in a clean file."""

import importlib.util
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("structure", ROOT / "scripts/structure.py")
structure = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(structure)


def problems(rule, path, text):
    return [(p.line, p.text) for p in rule(pathlib.PurePosixPath(path), text)]


@pytest.mark.parametrize(
    "path, include, expected",
    [
        ("src/tir/a.cc", '"tvm/arith/analyzer.h"', None),
        ("src/tir/a.cc", '"../arith/private.h"', None),
        ("src/tir/a.cc", '"local.h"', None),
        ("src/tir/a.cc", "<tvm/ffi/tvm_ffi.h>", None),
        ("src/tir/a.cc", "<tvm/te/tensor.h>", "tir may not include te (tvm/te/tensor.h)"),
        ("src/runtime/a.cc", '"tvm/ir/node.h"', "runtime may not include ir (tvm/ir/node.h)"),
        ("include/tvm/expr/a.h", '"tvm/tir/stmt.h"', "expr may not include tir (tvm/tir/stmt.h)"),
        ("src/te/a.cc", '"schedule/state.h"', "te may not include schedule (schedule/state.h)"),
        ("src/backend/c/a.cc", '"backend/llvm/b.h"', "backend c may not include backend llvm"),
        ("src/backend/c/a.cc", '"backend/codegen.h"', None),
        ("src/backend/c/a.cc", '"backend/source/text.h"', None),
        ("src/backend/source/a.cc", '"backend/c/b.h"', "backend source may not include backend c"),
        ("src/backend/llvm/a.cc", "<llvm/IR/Module.h>", None),
        (
            "src/driver/a.cc",
            "<llvm/IR/Module.h>",
            "llvm/IR/Module.h: only src/backend/llvm may include LLVM",
        ),
    ],
)
def test_include_direction(path, include, expected):
    text = f"// SPDX\n#include {include}\n"
    found = problems(structure.include_direction, path, text)
    assert found == ([] if expected is None else [(2, expected)])


def test_include_of_a_relative_path_is_resolved():
    found = problems(structure.include_direction, "src/tir/a.cc", '#include "../relax/b.h"\n')
    assert found == [(1, "tir may not include relax (src/relax/b.h)")]


@pytest.mark.parametrize(
    "path, line, named",
    [
        ("src/script/printer.cc", "if (value.as<tir::StmtObj>()) return;", "tir"),
        ("python/tvm/script/parser/core/entry.py", "from tvm.relax import Function", "relax"),
        ("python/tvm/script/ir_builder/base.py", 'if token == "tir":', "tir"),
        ("include/tvm/script/printer.h", 'String tir_prefix = "T";', None),
        ("src/script/tir/stmt.cc", "using namespace tir;", None),
        ("python/tvm/script/parser/tir.py", "from tvm import tir", None),
    ],
)
def test_shared_files_of_script_name_no_language(path, line, named):
    found = problems(structure.languages_in_script, path, f"x\n{line}\n")
    text = f"{named}: expected no language by name in shared files"
    assert found == ([(2, text)] if named else [])


OWNERS = {"driver.Build": "driver", "tir.f": "tir", "python.f": "python"}


@pytest.mark.parametrize(
    "path, call, expected",
    [
        ("src/schedule/a.cc", 'GetGlobalRequired("tir.f")', None),
        ("src/tune/a.cc", 'GetGlobalRequired("driver.Build")', None),
        ("src/tir/a.cc", 'GetGlobal("driver.Build")', "tir may not call driver.Build of driver"),
        ("src/tir/a.cc", 'GetGlobal("python.f")', "tir may not call python.f of python"),
        ("src/tir/a.cc", 'GetGlobal("no.f")', "no.f: expected a registered name, or one in"),
        ("tests/cpp/a.cc", 'GetGlobal("no.f")', None),
    ],
)
def test_call_direction(path, call, expected):
    found = list(structure.call_direction(pathlib.PurePosixPath(path), call, OWNERS))
    assert len(found) == (expected is not None)
    assert not found or found[0].text.startswith(expected)


@pytest.mark.parametrize(
    "path, line, expected",
    [
        ("python/tvm/te/a.py", "from tvm import tir", None),
        (
            "python/tvm/te/a.py",
            "from ..meta_schedule import x",
            "te may not import tvm.meta_schedule",
        ),
        ("python/tvm/te/a.py", "from tvm.driver import x", "te may not import tvm.driver"),
        ("python/tvm/te/a.py", "import tvm\ntvm.driver.build", "te may not import tvm.driver"),
        ("python/tvm/te/b/a.py", "from .. import x", None),
        ("python/tvm/te/a.py", "import numpy.testing", None),
        ("python/tvm/tir/a.py", "from tvm.script import tir as T", None),
    ],
)
def test_import_direction(path, line, expected):
    found = problems(structure.import_direction, path, line)
    assert [text.startswith(f"tvm.{expected}") for _, text in found] == [True] * bool(expected)


def test_every_exception_from_the_order_is_used():
    layers, used = structure.layers, set()
    for path in structure.files(ROOT):
        if path.suffix not in (".cc", ".h", ".py"):
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        if path.parts[:2] == ("python", "tvm"):
            inside = pathlib.PurePosixPath(*path.parts[2:])
            unit = inside.parts[0].removesuffix(".py")
            used |= {(unit, other) for _, other in layers.imported_units(inside, text)}
        elif path.parts[0] in ("src", "include") and structure.part_of(path):
            part = structure.part_of(path)[0]
            used |= {(part, name) for _, name in layers.called_names(text)}
    listed = {
        (who, what)
        for table in (layers.CALLS_UPWARD, layers.IMPORTS_UPWARD)
        for who, names in table.items()
        for what in names
    }
    assert listed <= used, listed - used


def test_size_fails_above_the_limit_only():
    assert problems(structure.size, "a.cc", "\n" * 1000) == []
    assert problems(structure.size, "a.cc", "\n" * 1001) == [(1000, "1001 lines; at most 1000")]


@pytest.mark.parametrize(
    "text, line",
    [
        ("// SPDX-License-Identifier: Apache-2.0\n// Purpose.\n", None),
        ("// Purpose.\n", 1),
        ("// SPDX-License-Identifier: Apache-2.0\n#include <a>\n", 2),
        ("", None),
    ],
)
def test_header(text, line):
    assert [p[0] for p in problems(structure.header, "a.cc", text)] == ([line] if line else [])


@pytest.mark.parametrize(
    "text, lines",
    [
        ("  a = 1, b = 2;\n", [1]),
        ("  n->min = min, n->extent += extent;\n", [1]),
        ("  int a = 1, b = 2;\n", []),
        ("  int a = 1,\n      b = 2, c = 3;\n", []),
        ("  f(a = 1, b = 2);\n", []),
    ],
)
def test_comma_operators_are_found(text, lines):
    found = structure.comma_operator(pathlib.PurePosixPath("src/tir/x.cc"), text)
    assert [problem.line for problem in found] == lines


@pytest.mark.parametrize(
    ("path", "line", "found"),
    [
        ("src/tir/a.cc", 'if (View(target->kind->name) == "llvm") {', True),
        ("python/tvm/relax/a.py", 'if target.kind.name in ("cuda", "opencl"):', True),
        ("python/tvm/relax/a.py", 'if str(target.kind.name) not in ("llvm", "c"):', True),
        ("python/tvm/relax/a.py", "row = ROWS.get(target.kind.name)", False),
        ("src/tune/a.cc", 'if (inst->kind->name == "Split") {', False),
        ("src/ir/target/a.cc", 'if (kind->name == "c") {', False),
        ("src/backend/llvm/a.cc", 'if (target->kind->name == "llvm") {', False),
    ],
)
def test_comparisons_of_kinds_are_found(path, line, found):
    assert len(problems(structure.kind_names, path, line)) == found


def test_machine_paths_are_found():
    path = "/".join(["", "home", "someone"])
    assert problems(structure.machine_path, "a.md", f"x\ncd {path}\n")[0][0] == 2
    assert problems(structure.machine_path, "a.md", "/usr/lib and workload/home\n") == []


def test_precompiled_headers_are_part_of_the_keys_of_ccache():
    include = ROOT / "include"
    seen, todo = set(), ["tvm/ir/node.h", "tvm/runtime/def.h"]
    while todo:
        header = todo.pop()
        if header not in seen and (include / header).exists():
            seen.add(header)
            todo += re.findall(r'#include ["<](tvm/[^">]+)', (include / header).read_text())
    listed = re.search(r"set\(precompiled (.*)\)", (ROOT / "cmake/toolchain.cmake").read_text())
    assert {"tvm/" + name for name in listed.group(1).split()} == seen


def test_this_repository_is_clean():
    found, _ = structure.check(ROOT)
    assert not found, "\n".join(map(str, found))
