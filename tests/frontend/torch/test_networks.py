# SPDX-License-Identifier: Apache-2.0
"""Some of the networks of the command `python -m tests.frontend.torch.networks`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
from .. import scoreboard
from .networks import check

ROOT = Path(__file__).parents[3]


def test_results_are_those_of_pytorch():
    # By the command: a process that has used its threads is not forked.
    names = ["unet/export-dynamic", "dlrm/compile-dynamic"]
    command = [sys.executable, "-m", "tests.frontend.torch.networks", *names]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_missing_package_is_a_reason(monkeypatch):
    monkeypatch.setattr("frontend.torch.networks.has", lambda package: False)
    assert check("bert/export") == "skipped: needs transformers"


def test_what_ends_a_process_or_raises_is_a_reason():
    assert scoreboard.isolated(lambda name: os._exit(3), "x", 60) == "the process ended with 3"
    assert scoreboard.isolated(lambda name: 1 // 0, "x", 60).startswith("ZeroDivisionError")
    assert scoreboard.isolated(lambda name: None, "x", 60) is None
