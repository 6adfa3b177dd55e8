# SPDX-License-Identifier: Apache-2.0
"""Tuning from the function to the database: resuming, interruptions, reports, bad input."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import meta_schedule as ms
from tvm.meta_schedule.builder import BuilderResult, PyBuilder
from tvm.meta_schedule.cost_model import RandomModel
from tvm.meta_schedule.database import JSONDatabase
from tvm.meta_schedule.measure_callback import PyMeasureCallback
from tvm.meta_schedule.runner import LocalRunner, LocalRunnerFuture, PyRunner
from tvm.meta_schedule.task_scheduler import GradientBased, RoundRobin
from tvm.meta_schedule.task_scheduler.loop import mean

from tests.tune import programs

TARGET = tvm.testing.host_target("-num-cores=2")


def tune(func, work_dir, trials=8, **kwargs):
    options = {"num_trials_per_iter": 4, "seed": 1, "cost_model": "random", **kwargs}
    return ms.tune_tir(func, TARGET, str(work_dir), trials, **options)


def lines(work_dir):
    return (Path(work_dir) / "database_tuning_record.json").read_text().splitlines()


def test_the_best_schedule_is_found_and_used(tmp_path):
    func = programs.matmul(48, 48, 48)
    database = tune(func, tmp_path, 12)
    assert isinstance(database, JSONDatabase) and len(database) == 12
    workload = database.get_all_tuning_records()[0].workload
    best = database.get_top_k(workload, 1)[0]
    default = [r for r in database.get_all_tuning_records() if len(r.trace.insts) == 0]
    assert len(default) == 1 and float(best.run_secs[0]) <= float(default[0].run_secs[0])
    sch = best.as_measure_candidate().sch
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 48, 48), dtype="float32")
    c = np.zeros((48, 48), "float32")
    tvm.build(sch.mod, target=TARGET)(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    assert ms.compile_tir(database, func, TARGET) is not None
    assert ms.compile_tir(database, programs.sigmoid(), TARGET) is None


def test_work_dir_has_logs_and_a_report(tmp_path):
    tune(programs.sigmoid(), tmp_path)
    log = (tmp_path / "logs" / "task_00_main.log").read_text()
    assert "trial 8:" in log and "time spent" in log
    report = (tmp_path / "report.html").read_text()
    assert "<svg" in report and "Best schedule" in report and "T.prim_func" in report
    assert not re.search(r'(src|href)="', report)  # all in one file


def test_name_of_the_task(tmp_path):
    tune(programs.sigmoid(), tmp_path, 2, task_name="mine")
    assert (tmp_path / "logs" / "task_00_mine.log").exists()
    two = tvm.IRModule({"f": programs.sigmoid(), "g": programs.sigmoid()})
    with pytest.raises(ValueError, match="task_name: expected a module of one function, got 2"):
        tune(two, tmp_path, 2, task_name="mine")


def test_running_again_goes_on(tmp_path):
    tune(programs.sigmoid(), tmp_path, 8)
    first = lines(tmp_path)
    assert len(tune(programs.sigmoid(), tmp_path, 8)) == 8
    assert lines(tmp_path) == first  # nothing was left to do
    assert len(tune(programs.sigmoid(), tmp_path, 12)) == 12
    assert lines(tmp_path)[: len(first)] == first


def test_programs_are_known_by_their_hashes(tmp_path):
    tune(programs.sigmoid(), tmp_path, 8)
    database = JSONDatabase(work_dir=str(tmp_path))
    records = database.get_all_tuning_records()
    assert len({str(r.program) for r in records}) == 8
    outlines = database._outlines(records[0].workload, records[0].target)
    assert [o[0] for o in outlines] == [mean(r.run_secs) for r in records]
    assert all(same_target for _, _, same_target, _ in outlines)
    assert [is_default for _, _, _, is_default in outlines] == [True] + [False] * 7


@pytest.mark.parametrize(("secs", "beaten"), [(0.985, False), (0.5, True)])
def test_the_default_wins_a_draw(tmp_path, secs, beaten):
    class Runner(LocalRunner):
        def run(self, inputs):
            return [LocalRunnerFuture([1.0 - 0.01 * i]) for i in range(len(inputs))]

        def race(self, inputs, seconds):
            return [LocalRunnerFuture([secs]) for _ in inputs[1:]] + [LocalRunnerFuture([1.0])]

    database = tune(programs.sigmoid(), tmp_path, 4, runner=Runner())
    workload = database.get_all_tuning_records()[0].workload
    assert bool(len(database.get_top_k(workload, 1)[0].trace.insts)) == beaten


def test_the_cost_model_is_kept(tmp_path):
    pytest.importorskip("xgboost")
    tune(programs.sigmoid(), tmp_path, 8, cost_model="xgb")
    model = ms.cost_model.XGBModel()
    model.load(tmp_path / "cost_model.npz")
    assert model.data_size == 8


def test_a_killed_run_keeps_its_records(tmp_path):
    script = textwrap.dedent(f"""
        from tests.tune import programs
        from tvm import meta_schedule as ms
        ms.tune_tir(programs.sigmoid(256, 256), "{TARGET}", "{tmp_path}", 400,
                    num_trials_per_iter=4, cost_model="random", seed=1)
    """)
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    path = tmp_path / "database_tuning_record.json"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not path.exists() or len(lines(tmp_path)) < 8):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = [line for line in lines(tmp_path) if line.endswith("}")]
    assert len(before) >= 8
    database = tune(programs.sigmoid(256, 256), tmp_path, len(before) + 4)
    assert lines(tmp_path)[: len(before)] == before and len(database) >= len(before) + 4


def test_interrupting_keeps_results(tmp_path):
    class Interrupt(PyMeasureCallback):
        def apply(self, *_):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    callbacks = [*ms.MeasureCallback.create("default"), Interrupt()]
    database = tune(programs.sigmoid(), tmp_path, 40, measure_callbacks=callbacks)
    assert 4 <= len(database) < 40 and len(lines(tmp_path)) == len(database)


def test_max_time_ends_the_run(tmp_path):
    database = tune(programs.matmul(), tmp_path, 10_000, max_time=0.5)
    assert 0 < len(database) < 10_000


def test_bad_candidates_are_recorded_with_the_reason(tmp_path):
    bad = [programs.nearly_doubled, programs.aborts, programs.never_ends, programs.out_of_bounds]

    class Planted(PyBuilder):
        """Builds programs that misbehave in the place of some candidates."""

        def __init__(self):
            self.inner, self.left = ms.Builder.create("local"), list(bad)

        def build(self, build_inputs):
            results = self.inner.build(build_inputs)
            if len(build_inputs) < 2:
                return results  # the reference
            for i in range(1, len(results)):
                if not self.left:
                    break
                path = str(results[i].artifact_path)
                tvm.compile(self.left.pop(), target=TARGET).export_library(path)
            return results

    database = tune(
        programs.doubled,
        tmp_path,
        8,
        builder=Planted(),
        runner=LocalRunner(timeout_sec=1),
        measure_callbacks="default",
        task_scheduler="round-robin",
        num_trials_per_iter=8,
    )
    errors = [str(r.error_msg) for r in database.get_all_tuning_records() if r.error_msg]
    assert len(errors) == 4
    for reason in ("wrong result", "signal 6", "stopped: more than 5", "signal 11"):
        assert any(reason in e for e in errors), reason
    workload = database.get_all_tuning_records()[0].workload
    assert len(database.get_top_k(workload, 10)) == len(database) - 4
    assert "wrong result" in (tmp_path / "report.html").read_text()


def test_parts_that_raise_cost_their_round(tmp_path, caplog):
    class Broken(PyBuilder):
        def build(self, build_inputs):
            if len(build_inputs) == 1:
                return [BuilderResult(None, "no reference")]
            raise ArithmeticError("no")

    database = tune(programs.sigmoid(), tmp_path, 8, builder=Broken())
    assert all("ArithmeticError: no" in str(r.error_msg) for r in database.get_all_tuning_records())

    class BrokenRunner(PyRunner):
        def run(self, runner_inputs):
            raise ArithmeticError("never")

    tune(programs.row_sum(), tmp_path, 4, runner=BrokenRunner())
    assert "runner: ArithmeticError: never" in caplog.text


@pytest.mark.parametrize("method", ["predict", "update", "save"])
def test_a_cost_model_that_raises_costs_its_advice(tmp_path, caplog, method):
    def fails(*_):
        raise ArithmeticError("no idea")

    model = RandomModel()
    setattr(model, method, fails)
    database = tune(programs.sigmoid(), tmp_path, 16, num_trials_per_iter=8, cost_model=model)
    assert len(database) == 16
    assert "ArithmeticError: no idea" in caplog.text


def test_records_that_cannot_be_written_are_told_and_the_run_goes_on(tmp_path, caplog):
    database = ms.database.MemoryDatabase()
    callbacks = ms.MeasureCallback.create("default")

    class Disk(PyMeasureCallback):
        def apply(self, *_):
            raise OSError(28, "No space left on device")

    tune(programs.sigmoid(), tmp_path, 8, database=database, measure_callbacks=[Disk(), *callbacks])
    assert "No space left on device" in caplog.text and len(database) == 8


def test_several_functions_share_the_trials(tmp_path):
    mod = tvm.IRModule({"f": programs.sigmoid(), "g": programs.row_sum()})
    for scheduler in ("gradient", "round-robin"):
        database = tune(mod, tmp_path / scheduler, 16, task_scheduler=scheduler)
        workloads = {str(json.loads(line)["workload"]) for line in lines(tmp_path / scheduler)}
        assert len(database) == 16 and len(workloads) == 2
    names = sorted(p.name for p in (tmp_path / "gradient" / "logs").iterdir())
    assert names == ["task_00_f.log", "task_01_g.log"]


def test_gradient_prefers_what_pays():
    scheduler = GradientBased()

    class Task:
        is_terminated = False

        def __init__(self, weight, history):
            self.task_weight, self.best_history = weight, history

    scheduler.tasks_ = [Task(1.0, [1e-3, 1e-3, 1e-3]), Task(1.0, [1e-1, 5e-2, 2e-2])]
    assert scheduler.next_task_id() == 1
    scheduler.tasks_[1].is_terminated = True
    assert scheduler.next_task_id() == 0
    scheduler.tasks_.append(Task(1.0, []))
    assert scheduler.next_task_id() == 2
    robin = RoundRobin()
    robin.tasks_ = [Task(1, []), Task(1, [])]
    assert [robin.next_task_id() for _ in range(3)] == [0, 1, 0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"trials": 0}, ValueError, "max_trials_global: expected a positive number of trials"),
        ({"num_trials_per_iter": 0}, ValueError, "num_trials_per_iter: expected a positive"),
        ({"num_tuning_cores": "both"}, ValueError, "expected 'physical', 'logical'"),
        ({"max_time": -1}, ValueError, "max_time: expected a positive number of seconds"),
        ({"space": "postorder"}, ValueError, "space generator: expected one of 'post-order-apply'"),
        ({"strategy": "evolution"}, ValueError, "did you mean 'evolutionary'"),
        ({"special_space": {"x": "union"}}, ValueError, "special_space: expected names of"),
    ],
)
def test_bad_options(tmp_path, options, error, message):
    options = dict(options)
    with pytest.raises(error, match=message):
        tune(programs.sigmoid(), tmp_path, options.pop("trials", 4), **options)


def test_numbers_of_numpy_are_numbers(tmp_path):
    database = tune(programs.sigmoid(), tmp_path, np.int64(2), num_trials_per_iter=np.int32(1))
    assert len(database) == 2


def test_bad_programs_and_folders(tmp_path):
    with pytest.raises(TypeError, match="expected a PrimFunc or an IRModule, got int"):
        tune(3, tmp_path)
    n = tvm.te.size_var("n")
    A = tvm.te.placeholder((n,), name="A")
    dynamic = tvm.te.create_prim_func([A, tvm.te.compute((n,), lambda i: A[i] + 1, name="B")])
    with pytest.raises(ValueError, match="expected tensors of constant shape"):
        tune(dynamic, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="work_dir: cannot make the folder"):
        tune(programs.sigmoid(), tmp_path / "file" / "below")
    with pytest.raises(OSError, match="work_dir: "):
        tune(programs.sigmoid(), tmp_path / "file")
    with pytest.raises(ValueError, match="num-core.*num-cores"):
        ms.tune_tir(programs.sigmoid(), "llvm -num-core=2", str(tmp_path), 4)
    with pytest.raises(ValueError, match="nosuchkind"):
        ms.tune_tir(programs.sigmoid(), "nosuchkind", str(tmp_path), 4)
    with pytest.raises(ValueError, match="LocalRunner: expected the device 'cpu', got 'cuda'"):
        ms.tune_tir(programs.sigmoid(), "cuda", str(tmp_path), 4)
    with pytest.raises(ValueError, match="expected a kind of target with default"):
        ms.tune_tir(programs.sigmoid(), "webgpu", str(tmp_path), 4)


def test_a_program_no_rule_fits(tmp_path):
    from tvm.script import tir as T

    @T.prim_func
    def opaque(A: T.Buffer((16,), "float32")):
        for i in range(16):
            A[i] = A[i] + T.float32(1)

    database = tune(opaque, tmp_path, 4)
    assert len(database) == 1  # the default schedule


def test_post_optimization(tmp_path):
    from tvm.meta_schedule.post_optimization import Droplet, PostOpt, get_time
    from tvm.meta_schedule.post_optimization.utils import clean_file, read_cfg_file, write_file

    database = tune(programs.matmul(), tmp_path, 8, num_trials_per_iter=8, post_optimization=True)
    assert 8 < len(database) <= 16
    records, workloads = (
        str(tmp_path / f"database_{name}.json") for name in ("tuning_record", "workload")
    )
    droplet = Droplet(records, workloads, TARGET)
    start = droplet.space.start()
    assert droplet.space.template(start) is not None and len(droplet.space) > 1
    for point in droplet.search_space():
        assert sum(a != b for a, b in zip(point, start, strict=True)) == 1
    times, best = get_time(records), read_cfg_file(records, workloads)
    assert min(times) > 0 and list(best) == [0]
    behind = "no better than the default"
    means = [mean(r.run_secs) for r in best[0] if r.verdict != behind]
    assert means == sorted(means)
    with pytest.raises(FileNotFoundError, match="PostOpt: expected .*database_tuning_record.json"):
        PostOpt(str(tmp_path / "nowhere"), TARGET).run()
    with pytest.raises(ValueError, match="post_optimization: expected database='json'"):
        tune(programs.matmul(), tmp_path, 8, post_optimization=True, database="memory")
    log = write_file([{"secs": [1.0, 2.0]}, {"secs": None}], str(tmp_path / "log.json"))
    assert get_time(write_file([{"secs": [3.0]}], log, "a")) == [1.0, 2.0, 3.0]
    clean_file(log)
    clean_file(log)  # which is gone already


@pytest.mark.slow
def test_the_sigmoid_script(tmp_path):
    """A script as users write it, unchanged."""
    text = (Path(__file__).parent / "sigmoid_script.py.txt").read_text(encoding="utf-8")
    (tmp_path / "script.py").write_text(text, encoding="utf-8")
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root / "python"), "PYTHONIOENCODING": "utf-8"},
    )
    assert result.returncode == 0, result.stderr
    assert "<class 'tvm.meta_schedule.database.json_database.JSONDatabase'>" in result.stdout
    assert re.search(r"repr: meta_schedule\.JSONDatabase\(0x[0-9a-f]+\)", result.stdout)
    error = re.search(r"(\d\.\d+e[-+]\d+)", result.stdout)
    assert float(error.group(1)) < 2e-7
    records = lines(tmp_path / "tune_sigmoid")
    assert len({json.dumps(json.loads(r)["trace"]) for r in records}) >= 50
