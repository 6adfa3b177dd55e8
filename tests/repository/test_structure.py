# SPDX-License-Identifier: Apache-2.0
"""The repository rules find what they are about, and nothing in a clean file."""

import importlib.util
import pathlib

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


def test_machine_paths_are_found():
    path = "/".join(["", "home", "someone"])
    assert problems(structure.machine_path, "a.md", f"x\ncd {path}\n")[0][0] == 2
    assert problems(structure.machine_path, "a.md", "/usr/lib and workload/home\n") == []


def test_this_repository_is_clean():
    found, _ = structure.check(ROOT)
    assert not found, "\n".join(map(str, found))
