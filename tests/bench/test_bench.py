# SPDX-License-Identifier: Apache-2.0
"""The benchmark runner: sampling, error in ULP, ratios, and workers that fail."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from bench import compare, kernels, layers, measure, model_ops, models, peers, report, results
from bench.__main__ import parse
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

    number, seconds = measure.calibrate(PerCall(), 0.01)
    assert number == 5000 and seconds == pytest.approx(2e-6)


def test_what_takes_long_is_measured_once(monkeypatch):
    class PerCall:
        def __init__(self, seconds):
            self.seconds, self.calls = seconds, 0

        def time(self, number):
            self.calls += number
            return number * self.seconds

    monkeypatch.setattr(measure, "QUIET", 0)
    quick, slow = PerCall(0.01), PerCall(3.0)
    samples = measure.time_alternating({"tvm": quick, "slow": slow}, 5, 0.03)
    assert len(samples["tvm"]) == 5 and samples["slow"] == [3.0] and slow.calls == 1
    assert Row("x", "slow", samples["slow"]).ratio(Row("x", "tvm", samples["tvm"])) > 200


def test_peers_can_be_chosen(monkeypatch):
    made = []
    monkeypatch.setattr(peers, "Worker", made.append)
    peers.installed(only=["numpy"])
    assert made == ["tvm", "numpy"]
    with pytest.raises(SystemExit):
        parse(["sigmoid", "--peers", "nobody"])


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
    nothing = Row("memory", "tvm", [0.0])  # below what the process held before
    assert Row("memory", "numpy", [1.0]).ratio(nothing) == float("inf")


def _run(tmp_path, name, threads=1, **medians):
    rows = [
        {"case": case, "subject": subject, "median": median, "spread": 0.01}
        for case, (ours, peer) in medians.items()
        for subject, median in (("tvm", ours), ("torch", peer))
    ]
    run = {"cpu": peers.cpu_model(), "threads": threads, "rows": rows}
    (tmp_path / name).write_text(json.dumps(run))
    return str(tmp_path / name)


def test_compare_finds_what_is_slower(tmp_path, capsys):
    before = _run(tmp_path, "before", a=(1.0, 1.0), b=(1.0, 1.0), c=(1.0, 1.0))
    # The machine was twice as slow in the second run, and only `b` was by more.
    after = _run(tmp_path, "after", a=(2.0, 2.0), b=(3.0, 2.0), c=(1.0, 2.0))
    with pytest.raises(SystemExit) as end:
        compare.main([before, after])
    assert end.value.code == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["slower", "faster", "3"]
    assert lines[0].endswith("  b") and lines[1].endswith("  c")
    with pytest.raises(SystemExit) as end:
        compare.main([before, before])
    assert end.value.code == 0


def test_compare_needs_the_same_machine(tmp_path, capsys):
    one, two = _run(tmp_path, "one", a=(1, 1)), _run(tmp_path, "two", threads=2, a=(1, 1))
    with pytest.raises(SystemExit) as end:
        compare.main([one, two])
    assert end.value.code == 2 and "the same kind of CPU" in capsys.readouterr().err


def test_kept_results_are_replaced_case_by_case_and_compared_by_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")

    def git(*arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", tmp_path, *who, *arguments], check=True, capture_output=True)

    def keep(**cases):
        rows = report.as_json([Row(case, "tvm", [s, s]) for case, s in cases.items()])
        results.keep({"cpu": "A (R) CPU", "threads": 2, "rows": rows})
        git("add", "."), git("commit", "-m", "kept")

    git("init")
    keep(a=1.0, b=1.0)
    keep(b=2.0, c=1.0)
    (file,) = (tmp_path / "results").iterdir()
    assert file.name == "a-r-cpu-2.json"
    kept = json.loads(file.read_text())["rows"]
    assert [(row["case"], row["median"]) for row in kept] == [("a", 1.0), ("b", 2.0), ("c", 1.0)]
    with pytest.raises(SystemExit) as end:
        compare.main(["HEAD~1", "HEAD"])
    assert end.value.code == 1  # b is slower
    with pytest.raises(SystemExit, match="expected a file or a commit"):
        compare.main(["nowhere", "HEAD"])


def test_distinct_convolutions_are_those_of_the_network():
    found = layers.convolutions(models.MODELS["resnet50"][0])
    assert len(found) == len(set(found)) == 23
    assert (3, 224, 64, 7, 2, 1) in found and (512, 7, 512, 3, 1, 1) in found


def test_layers_compute_what_their_names_say():
    for name in ("layer 3x5x7", "layer conv 8 6 4 3 2 1"):
        model = models.Model(name, definition=layers.find(name))
        inputs = [torch.from_numpy(x) for x in model.inputs()]
        (got,) = model_ops.torch_module(model)(*inputs)
        if "conv" in name:
            assert got.shape == (1, 4, 3, 3)
        else:
            want = model.inputs()[0] @ model.weights("weight", (5, 7)).T
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


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
