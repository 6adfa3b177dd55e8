# SPDX-License-Identifier: Apache-2.0
"""What a run of tuning says to options, parts and disks that are no good; and that it repeats."""

import os
import subprocess
import sys

import pytest
import tvm
from tvm import meta_schedule as ms
from tvm.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerResult
from tvm.meta_schedule.testing.dummy_object import DummyBuilder
from tvm.target import Target

from tests.tune import programs

TARGET = Target("llvm -num-cores=2")


def tune(tmp_path, trials=4, func=None, **options):
    return ms.tune_tir(func or programs.sigmoid(), TARGET, str(tmp_path), trials, **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_trials_per_task": -1}, ValueError, "max_trials_per_task: expected a positive"),
        ({"max_trials_per_task": 0}, ValueError, "max_trials_per_task: expected a positive"),
        ({"seed": "one"}, TypeError, "seed: expected a number or None, got 'one'"),
        ({"measure_callbacks": [print]}, TypeError, "expected MeasureCallbacks, got builtin"),
        ({"runner": "rpc"}, NotImplementedError, "remote measuring is not available yet; use"),
        ({"max_trial_per_task": 3}, TypeError, "tune_tir: .* unexpected .*max_trial_per_task"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_options(tmp_path, capfd, options, error, message):
    with pytest.raises(error, match=message):
        tune(tmp_path, **options)
    assert capfd.readouterr().err == ""  # no table of a run that did not begin


def test_tasks(tmp_path):
    def run(task):
        ms.tune_tasks(tasks=[task], task_weights=[1.0], work_dir=str(tmp_path), max_trials_global=2)

    with pytest.raises(TypeError, match="tasks: expected TuneContexts, got PrimFunc"):
        run(programs.sigmoid())
    with pytest.raises(ValueError, match="task mine: expected a target, got None"):
        run(ms.TuneContext(programs.sigmoid(), task_name="mine"))
    with pytest.raises(ValueError, match="expected a search_strategy, got None"):
        run(ms.TuneContext(programs.sigmoid(), target=TARGET))
    with pytest.raises(TypeError, match="work_dir: expected a path, got NoneType"):
        ms.tune_tir(programs.sigmoid(), TARGET, None, 4)
    with pytest.raises(TypeError, match="compile_tir: expected a Database, got NoneType"):
        ms.compile_tir(None, programs.sigmoid(), TARGET)
    with pytest.raises(ValueError, match="expected a graph with kernels to tune, got none"):
        ms.relax_integration.tune_lowered(tvm.IRModule(), TARGET, "work", 4)


def test_results_that_raise_cost_their_candidate(tmp_path, caplog):
    class Future(PyRunnerFuture):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def done(self):
            return True

        def result(self):
            if self.number == 1:
                raise ConnectionError("the device went away")
            return RunnerResult([1e-3], None)

    class Runner(PyRunner):
        def run(self, runner_inputs):
            return [Future(i) for i in range(len(runner_inputs))]

    database = tune(tmp_path, 4, runner=Runner(), builder=DummyBuilder())
    errors = [r.error_msg for r in database.get_all_tuning_records() if r.error_msg]
    assert errors == ["runner: ConnectionError: the device went away"]
    assert "the device went away" in caplog.text and len(database) == 4


class Scripted(PyRunner):
    """Times that follow from the number of the candidate."""

    class Future(PyRunnerFuture):
        def __init__(self, secs):
            super().__init__()
            self.secs = secs

        def done(self):
            return True

        def result(self):
            return RunnerResult([self.secs], None)

    def __init__(self):
        self.count = 0

    def run(self, runner_inputs):
        self.count += len(runner_inputs)
        first = self.count - len(runner_inputs)
        return [self.Future(1e-3 + (i * 37 % 101) * 1e-5) for i in range(first, self.count)]


@pytest.mark.parametrize("model", ["xgb", "random"])
def test_the_same_seed_and_times_give_the_same_candidates(tmp_path, model):
    def traces(folder, seed):
        models = {"random": ms.cost_model.RandomModel(seed=3), "xgb": "xgb"}
        database = tune(
            tmp_path / folder,
            48,
            programs.matmul(),
            num_trials_per_iter=16,
            seed=seed,
            builder=DummyBuilder(),
            runner=Scripted(),
            cost_model=models[model],
        )
        return [str(r.trace) for r in database.get_all_tuning_records()]

    first = traces("a", 5)
    assert len(first) == 48
    assert first == traces("b", 5)
    assert first != traces("c", 6)


FULL_DISK = """
import resource, signal, sys
sys.path[:0] = {path!r}
import tvm
from tvm import meta_schedule as ms
from tests.tune import programs
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from tvm.meta_schedule.testing.dummy_object import DummyBuilder
from tests.tune.test_bad_input import Scripted, TARGET
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
database = ms.tune_tir(programs.matmul(), TARGET, sys.argv[1], 64, num_trials_per_iter=16,
                       builder=DummyBuilder(), runner=Scripted(), seed=1)
print("records:", len(database))
"""


def test_a_disk_that_fills_up_during_a_run(tmp_path):
    path = [os.path.dirname(os.path.dirname(tvm.__file__)), os.getcwd()]
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK.format(path=path), str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "records: 64" in run.stdout  # all of them in memory
    assert "16 record(s) in memory only: JSONDatabase: cannot write" in run.stderr
    assert run.stderr.count("database_tuning_record.json") <= 5  # once in a round, and at the end
    assert "cost_model.npz: OSError" in run.stderr
    assert not list(tmp_path.glob("*.npz*"))  # whole or not at all
    # What is there is whole lines, and the next run goes on from them.
    kept = len(ms.database.JSONDatabase(work_dir=str(tmp_path)))
    assert 0 < kept < 64
    again = tune(tmp_path, 64, programs.matmul(), builder=DummyBuilder(), runner=Scripted(), seed=1)
    assert len(again) == 64
