# SPDX-License-Identifier: Apache-2.0
"""Tools that a test needs, and recorded fakes for those that cannot exist here."""

import json
import shutil
import stat
import sys

import pytest

FAKE = """#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]) + "\\n")
{action}
"""


class FakeTool:
    """A program that records how it was called, then does what `action` says."""

    def __init__(self, path, action=""):
        self.path, self.log = path, path.parent / f".{path.name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = FAKE.format(python=sys.executable, log=str(self.log), action=action)
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def __str__(self):
        return str(self.path)

    @property
    def records(self):
        """(arguments, folder, environment) of each call."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    @property
    def calls(self):
        return [arguments for arguments, _, _ in self.records]


@pytest.fixture
def fake_tool(tmp_path, monkeypatch):
    """`fake_tool("name", action)` makes a program that is found before any real one."""
    folder = tmp_path / "fake-bin"
    folder.mkdir()

    def make(name, action="", on_path=True):
        if on_path:
            monkeypatch.setenv("PATH", f"{folder}:{sys_path}")
        return FakeTool(folder / name if on_path else tmp_path / name, action)

    import os

    sys_path = os.environ["PATH"]
    return make


@pytest.fixture
def no_tools(tmp_path, monkeypatch):
    """A machine without any program."""
    empty = tmp_path / "no-tools"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    for name in ("CXX", "CC", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def need():
    """`need("program")` skips the test, with the reason, where the program is missing."""

    def check(*programs):
        missing = [p for p in programs if shutil.which(p) is None]
        if missing:
            pytest.skip(f"needs {', '.join(missing)}")

    return check
