# SPDX-License-Identifier: Apache-2.0
"""The benchmark runner: sampling, error in ULP, ratios, and workers that fail."""

import sys

import numpy as np
import pytest

from bench import kernels, measure, peers, report
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


SUBJECTS = [
    name for name, subject in peers.SUBJECTS.items() if subject.venv == "" and subject.is_there
]


@pytest.fixture(scope="module")
def worker():
    """A worker of our own environment, for whichever subject."""
    one = peers.Worker("numpy")
    yield one
    one.close()


@pytest.mark.parametrize("name", SUBJECTS)
def test_subjects_agree_with_each_other(worker, name, monkeypatch):
    if name == "torch.compile":
        pytest.skip("compiles C++: takes too long")
    x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(8, 8)
    monkeypatch.setattr(worker, "subject", peers.SUBJECTS[name])
    timed = worker.prepare("tanh", [x])
    assert timed.time(2) > 0
    if name == "copy":
        assert timed.output() is None
    else:
        np.testing.assert_allclose(timed.output(), np.tanh(x), rtol=1e-6)


def _softmax(a):
    e = np.exp(a - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _layer_norm(a, scale, bias):
    return (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5) * scale + bias


def _conv2d(a, w):
    views = np.lib.stride_tricks.sliding_window_view(a, w.shape[2:], (2, 3))
    return np.einsum("ncyxij,ocij->noyx", views, w, optimize=True)


REFERENCES = {
    **{name: kernel.exact for name, kernel in kernels.ELEMENTWISE.items()},
    "gelu": lambda x: x * 0.5 * (1 + kernels.ELEMENTWISE["erf"].exact(x * 0.5**0.5)),
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "row_sum": lambda a: a.sum(1),
    "column_sum": lambda a: a.sum(0),
    "transpose": np.transpose,
    "matmul": np.matmul,
    "conv2d": _conv2d,
}


def test_kernel_that_a_subject_does_not_have(worker):
    assert worker.prepare("softmax", [np.ones((2, 2), np.float32)]) is None


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_kernels_are_what_numpy_says(worker, name, monkeypatch):
    monkeypatch.setattr(worker, "subject", peers.SUBJECTS["tvm"])
    inputs = kernels.KERNELS[name].inputs(0)
    if name != "conv2d":
        inputs = [x[:8, :16] if x.ndim == 2 else x[:16] for x in inputs]
    if name == "matmul":
        inputs[1] = inputs[1].T.copy()
    got = worker.prepare(name, inputs)
    got.time(1)
    wide = [x.astype(np.float64) for x in inputs]
    np.testing.assert_allclose(got.output(), REFERENCES[name](*wide), rtol=1e-4, atol=1e-4)


def test_error_in_a_worker_is_reported(worker):
    with pytest.raises(RuntimeError, match="numpy: KeyError: 'dance'"):
        worker.ask("dance")


def test_missing_peers_are_noted(monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "ROOT", tmp_path)
    missing = {name: subject for name, subject in peers.SUBJECTS.items() if subject.venv}
    monkeypatch.setattr(peers, "SUBJECTS", missing)
    subjects, notes = peers.installed(without=["jax"])
    assert subjects == []
    assert notes == [
        f"{name} is not installed: make bench-peers" for name in missing if name != "jax"
    ]


def test_every_environment_has_its_requirements():
    files = {path.stem for path in (peers.ROOT / "bench/requirements").iterdir()}
    assert files == {subject.venv for subject in peers.SUBJECTS.values()} - {""}


def test_our_package_does_not_reach_another_python(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "python")
    assert "PYTHONPATH" in peers.environment(sys.executable)
    assert "PYTHONPATH" not in peers.environment(peers.SUBJECTS["jax"].python)


def test_worker_that_ends_is_reported():
    worker = peers.Worker("numpy")
    worker.process.terminate()
    worker.process.wait()
    with pytest.raises(RuntimeError, match="numpy: the worker ended with status -15"):
        worker.ask("version")


def test_a_step_of_the_virtual_machine():
    worker = peers.Worker("tvm")
    try:
        for mode in ("bytecode", "compiled"):
            assert 0 < worker.ask("machine_seconds", mode, 10) < 0.01
    finally:
        worker.close()
