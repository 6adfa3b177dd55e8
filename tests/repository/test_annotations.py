# SPDX-License-Identifier: Apache-2.0
"""The step `types` of ./check finds public functions that say no types."""

import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("annotations", ROOT / "scripts/annotations.py")
annotations = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(annotations)


def test_the_package():
    assert annotations.check() == []


def test_what_is_missing_is_named(tmp_path):
    (tmp_path / "done.py").write_text(
        "def whole(x: int, *args: str) -> None: ...\n"
        "def half(x: int, y) -> None: ...\n"
        "def _private(x): ...\n"
        "class A:\n"
        "    def __init__(self, x): ...\n"
        "    def __len__(self): ...\n"
        "    def method(self) -> int: ...\n"
    )
    (tmp_path / "other.py").write_text("def f(x): ...\n")
    assert annotations.check(tmp_path, ("done.py",), least=2) == [
        "done.py:2: expected types of half",
        "done.py:5: expected types of A.__init__",
    ]
    assert annotations.check(tmp_path, (), least=3) == [
        "expected 3 public functions with types, got 2"
    ]
