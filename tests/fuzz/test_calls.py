# SPDX-License-Identifier: Apache-2.0
"""A sample of bad calls of every function: none ends the process."""

import os
import pathlib
import random
import subprocess
import sys

import pytest
import tvm

from .call_values import Values
from .calls import damaged, functions, methods, sweep

ROOT = pathlib.Path(__file__).parents[2]


def sample():
    """Three calls of every function, 24 of some; the deaths, and how many calls there were."""
    chosen = sorted(functions().items())
    made, deaths = sweep(chosen, range(3), Values(), report=lambda text: None)
    some = random.Random(0).sample(chosen, 200)
    more, others = sweep(some, range(3, 27), Values(), report=lambda text: None)
    return deaths + others, made + more


def objects_and_files():
    """The same of a third of the methods and properties, and of damaged files."""
    values = Values()
    chosen = sorted(methods(values).items())[::3]
    made, deaths = sweep(chosen, range(3), values, report=lambda text: None)
    more, others = sweep(sorted(damaged().items()), range(16), values, report=lambda text: None)
    return deaths + others, made + more


@pytest.mark.parametrize("sample", ["sample", "objects_and_files"])
def test_bad_calls_end_no_process(sample, tmp_path):
    # In a process of its own: one that has run other tests is large, and slow to fork.
    program = f"from tests.fuzz.test_calls import {sample}; print(*{sample}())"
    path = os.pathsep.join([str(ROOT), os.path.dirname(tvm.__path__[0])])
    env = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", program]  # some functions write files
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    deaths, _, made = done.stdout.strip().rpartition(" ")
    assert done.returncode == 0 and int(made) > 1000, done.stderr
    assert deaths == "[]", done.stderr


def test_a_death_is_seen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def dies(value):
        import os

        os.abort() if value is None else None

    seen = tmp_path / "seen"

    def lives(value):
        seen.write_text(seen.read_text() + "x" if seen.exists() else "x")

    chosen = [("dies", (dies, ["int"])), ("lives", (lives, ["int"]))]
    made, deaths = sweep(chosen, [0] * 5, Values(), report=lambda text: None)
    assert made == 10 and deaths == [("dies", 0, "SIGABRT")] * 3
    assert seen.read_text() == "x" * 5  # what is behind it in the process is called all the same
