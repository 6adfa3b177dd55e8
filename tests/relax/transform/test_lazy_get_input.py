# SPDX-License-Identifier: Apache-2.0
"""Weights that are asked for when they are used, by a model that does not fit in memory."""

import os
import subprocess
import sys

import numpy as np
import tvm

from bench.lazy_model import run


def test_weights_are_asked_for_once_and_in_order():
    result, expected, asked = run(layers=5, size=64)
    np.testing.assert_allclose(result, expected, rtol=1e-4)
    assert asked == [f"w{i}" for i in range(5)]


def test_a_model_that_does_not_fit_in_memory():
    """1 GB of weights in a process that may use three quarters of it."""
    env = {**os.environ, "PYTHONPATH": os.path.dirname(tvm.__path__[0]), "TVM_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "bench.lazy_model", "--gigabytes=1", "--limit=0.75"]
    lazy = subprocess.run(command, env=env, capture_output=True, text=True)
    assert lazy.returncode == 0, lazy.stderr
    eager = subprocess.run([*command, "--eager"], env=env, capture_output=True, text=True)
    assert eager.returncode != 0 and "MemoryError" in eager.stderr
