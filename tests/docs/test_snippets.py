# SPDX-License-Identifier: Apache-2.0
"""The programs in the documentation run as they are printed."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import tvm

ROOT = pathlib.Path(__file__).parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_of(page):
    """All Python of a page as one program, with the page's line numbers."""
    text = page.read_text(encoding="utf-8")
    program = ""
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        program += "\n" * (line - program.count("\n")) + block.group(1)
    return program


def run(program, folder):
    # The package that is being tested, from another folder; `tests` has tools that pages show.
    path = os.pathsep.join([os.path.dirname(tvm.__path__[0]), str(ROOT)])
    env = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, program]
    result = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("page", [p for p in PAGES if python_of(p)], ids=lambda page: page.name)
def test_page(page, tmp_path):
    program = tmp_path / page.name
    program.write_text(python_of(page))
    run(program, tmp_path)


def test_quickstart(tmp_path):
    assert "The result is right." in run(ROOT / "examples/quickstart.py", tmp_path)


def test_backend(tmp_path):
    assert "results as NumPy's" in run(ROOT / "examples/backend/dense.py", tmp_path)


def test_resnet18(tmp_path):
    assert "ms an image" in run(ROOT / "examples/resnet18.py", tmp_path)


@pytest.mark.parametrize(
    "page", sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")])
)
def test_links_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"
