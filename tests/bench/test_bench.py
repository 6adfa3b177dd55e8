# SPDX-License-Identifier: Apache-2.0
"""The benchmark runner: sampling, error in ULP, ratios, and workers that fail."""

import sys

import numpy as np
import pytest

from bench import measure, peers, report
from bench.measure import Row


def test_every_subject_is_sampled_once_per_round_in_rotating_order():
    order = []

    def take(name):
        order.append(name)
        return len(order)

    subjects = {name: lambda name=name: take(name) for name in "abc"}
    samples = measure.alternate(subjects, 3)
    assert "".join(order) == "abcbcacab"
    assert samples == {"a": [1, 6, 8], "b": [2, 4, 9], "c": [3, 5, 7]}


def test_calibrate_reaches_the_wanted_length():
    class PerCall:
        def time(self, number):
            return number * 2e-6

    assert measure.calibrate(PerCall(), 0.01) == 5000


@pytest.mark.parametrize(
    "result, exact, ulp",
    [
        ([1.0], [1.0], 0.0),
        ([np.nextafter(np.float32(1), np.float32(2))], [1.0], 1.0),
        ([1.0], [1 + 2.0**-24], 0.5),
        ([0.0], [2.0**-149], 1.0),
        ([np.inf, np.nan], [np.inf, np.nan], 0.0),
        ([np.inf], [1.0], np.inf),
        ([1.0], [np.nan], np.inf),
        ([np.nan], [1.0], np.inf),
    ],
)
def test_max_ulp(result, exact, ulp):
    assert measure.max_ulp(np.array(result, np.float32), np.array(exact)) == ulp


def test_ratio_is_taken_round_by_round():
    # The machine was ten times slower in the second round, for both.
    ours, peer = Row("exp", "tvm", [1.0, 10.0, 1.0]), Row("exp", "numpy", [2.0, 20.0, 2.0])
    assert peer.ratio(ours) == 2.0
    text = report.table([ours, peer])
    assert [line.split()[-2] for line in text.splitlines()[2:]] == ["1.00", "2.00"]


def test_peers_agree_with_each_other():
    x = np.linspace(-3, 3, 64, dtype=np.float32)
    expected = peers.NumPy().unary("tanh", x)
    expected.time(1)
    for name, peer in {"torch": peers.Torch, "onnxruntime": peers.OnnxRuntime}.items():
        pytest.importorskip(name)
        timed = peer(1).unary("tanh", x)
        timed.time(1)
        np.testing.assert_allclose(timed.output(), expected.output(), rtol=1e-6)


def test_error_in_a_worker_is_reported():
    worker = peers.Worker("peer", sys.executable)
    with pytest.raises(RuntimeError, match="peer: KeyError: 'dance'"):
        worker.ask("dance")
    worker.close()


def test_our_package_does_not_reach_another_python(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "python")
    assert "PYTHONPATH" in peers.environment(sys.executable)
    assert "PYTHONPATH" not in peers.environment(peers.PEER_PYTHON)


def test_worker_that_ends_is_reported():
    worker = peers.Worker("peer", sys.executable)
    worker.process.terminate()
    worker.process.wait()
    with pytest.raises(RuntimeError, match="peer: the worker ended with status -15"):
        worker.ask("version")
