# SPDX-License-Identifier: Apache-2.0
"""What CONTRIBUTING.md tells to run, and where it says that things are, exists."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\| `([^`]+)` \|", TEXT, re.M)
WORDS = re.findall(r"`([^`\n]+)`", TEXT)


def listed(prefix):
    found = [c for c in COMMANDS if c.startswith(prefix)]
    assert found, f"expected a command that begins with {prefix}"
    return found


def test_targets_of_make():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    for command in listed("make "):
        assert command.split()[1] in targets


@pytest.mark.parametrize("command", listed("./check"))
def test_steps_of_check(command):
    """The words are taken; an unknown one ends before the first step runs."""
    words = command.split()[1:]
    done = subprocess.run(
        [sys.executable, ROOT / "check", *words, "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert all(w in done.stdout for w in words)


def test_commands_of_pytest_and_bench():
    for command in listed("PYTHONPATH"):
        folder = re.search(r"pytest (\S+)", command)[1]
        assert (ROOT / folder).is_dir()
    for command in listed(".venv/bin/python -m bench"):
        cases = (ROOT / "bench/cases.py").read_text(encoding="utf-8")
        assert command.split()[-1] in cases


def test_options_of_cmake():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    for option in re.findall(r"-D(TVM_\w+)", TEXT):
        assert option in text


def test_files_and_folders():
    paths = [w for w in WORDS if re.fullmatch(r"(include|src|tests|docs|scripts)/[\w./]+", w)]
    assert len(paths) > 3
    for path in paths:
        assert (ROOT / path).exists(), path


def test_names():
    """Of the C++ and Python that the page tells to use."""
    sources = "".join(
        p.read_text(encoding="utf-8")
        for folder in ("include", "python/tvm/script")
        for p in sorted((ROOT / folder).rglob("*.*"))
        if p.suffix in (".h", ".py")
    )
    for name in ("RegisterLanguage", "struct Language", "register_language("):
        assert name in sources
        assert name.split()[-1].rstrip("(") in TEXT
