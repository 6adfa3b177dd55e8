# SPDX-License-Identifier: Apache-2.0
"""Long runs: pieces are spread over shards, remembered, and a failing one is told."""

import json
import pathlib
import subprocess
import sys

import pytest

from tests.long import RUNS, sample

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def long(*options):
    command = [sys.executable, "-m", "tests.long", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_pieces_are_remembered(tmp_path):
    state = tmp_path / "state.json"
    options = ["--only", "programs", "--piece", "2", "--state", state]
    first = long("--seconds", "3", *options)
    assert first.returncode == 0, first.stdout + first.stderr
    done = json.loads(state.read_text())
    assert done[0] == ["programs", 0]
    again = long("--seconds", "2", *options)
    assert f"{len(done)} pieces done before" in again.stdout
    assert "programs, seed 0:" not in again.stdout
    assert json.loads(state.read_text())[: len(done)] == done


def test_shards_have_other_seeds():
    assert "schedules, seed 1000000:" not in long("--seconds", "2", "--only", "schedules").stdout
    second = long("--seconds", "2", "--piece", "1", "--only", "schedules", "--shard", "2/2")
    assert "schedules, seed 1000000:" in second.stdout and "schedules, seed 0:" not in second.stdout


def test_a_sample_is_the_same_every_time(monkeypatch, capsys):
    small = {"schedules": 3, "rules": 50, "onnx": 20, "calls": 0}
    for name, count in small.items():
        monkeypatch.setitem(RUNS, name, (RUNS[name][0], count))
    assert sample(small, 5)
    said = capsys.readouterr().out
    for what in ("rules, seed 5: 50 graphs,", "onnx, seed 5: 20 files", "calls, seed 5: 0 calls"):
        assert what in said
    monkeypatch.setitem(RUNS, "rules", ("tests.fuzz.rules_that_fail", 1))
    assert not sample(["rules", "onnx"], 5)
    assert "No module named tests.fuzz.rules_that_fail" in capsys.readouterr().out


def test_unknown_runs_are_named():
    assert "expected some of programs, schedules" in long("--only", "program").stderr
