# SPDX-License-Identifier: Apache-2.0
"""./check finds the tests of what was changed."""

import importlib.machinery
import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
loader = importlib.machinery.SourceFileLoader("check_script", str(ROOT / "check"))
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_script", loader))
loader.exec_module(check)


def found(*paths):
    return check.tests_of([pathlib.PurePosixPath(path) for path in paths])


def test_a_source_has_the_test_of_its_name():
    unroll = "tests/tir/transform/test_unroll_loop.py"
    assert found("src/tir/transform/unroll_loop.cc") == [unroll]
    assert found(unroll) == [unroll]
    assert found("docs/build.md", "src/tir/no_such_file.cc") == []
