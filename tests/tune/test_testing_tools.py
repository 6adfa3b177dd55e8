# SPDX-License-Identifier: Apache-2.0
"""The tools of meta_schedule.testing: tuning a workload, checking a database again."""

import numpy as np
import pytest
import tvm
from tvm import meta_schedule as ms
from tvm.meta_schedule.database import JSONDatabase, TuningRecord
from tvm.meta_schedule.testing import te_workload, tune_te, tune_utils
from tvm.meta_schedule.testing import validate_database as vd
from tvm.meta_schedule.testing.custom_builder_runner import run_module_via_rpc
from tvm.meta_schedule.testing.distributed_measure_candidates import main as measure_again
from tvm.meta_schedule.testing.local_rpc import LocalRPC

from tests.tune import programs


@pytest.fixture
def tuned(tmp_path):
    """A folder with a few records."""
    ms.tune_tir(programs.doubled, "llvm", str(tmp_path), 3, num_trials_per_iter=3, seed=1)
    return tmp_path


def test_tuning_a_workload(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(te_workload.CONFIGS, "GMM", (te_workload.batch_matmul_nkkm, [(1, 8, 8, 8)]))
    options = ["--workload", "GMM", "--num-trials", "2", "--work-dir", str(tmp_path)]
    assert len(tune_te.main(options)) == 2
    assert "apply_trace" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        tune_te.main([*options, "--index", "1"])
    assert "--index: expected a number below 1, got 1" in capsys.readouterr().err


def test_a_database_is_validated(tuned, capsys):
    assert vd.main(["--work-dir", str(tuned), "--top-k", "2"]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 records are right" in out and "[1/2] pass" in out


def test_records_that_compute_something_else_are_found(tuned, capsys, monkeypatch):
    other = tvm.IRModule({"main": programs.nearly_doubled.with_attr("global_symbol", "main")})
    monkeypatch.setattr(vd, "as_written", lambda mod: other)
    assert vd.main(["--work-dir", str(tuned), "--top-k", "2"]) == 2
    out = capsys.readouterr().out
    assert "[1/2] fail: wrong result: argument 1, element 255" in out
    assert "0 of 2 records are right" in out


def test_a_database_without_records_of_the_target_is_refused(tuned):
    with pytest.raises(ValueError, match="expected records for.*found none"):
        vd.main(["--work-dir", str(tuned), "--target", "llvm -num-cores=77"])
    with pytest.raises(FileNotFoundError):
        vd.main(["--work-dir", str(tuned / "nowhere")])


def test_parts_of_validation(capsys):
    target = tvm.target.Target("llvm")
    assert vd.get_device_type(target) == "cpu"
    assert vd.get_device_type(tvm.target.Target("cuda")) == "cuda"
    mod = tvm.IRModule({"main": programs.doubled.with_attr("global_symbol", "main")})
    assert vd.OriginalModule(mod) == vd.OriginalModule(mod.clone())
    assert len({vd.OriginalModule(mod), vd.OriginalModule(mod.clone())}) == 1
    inputs = vd.check_and_run("tvm.meta_schedule.testing.default_input_generator", mod)
    outputs, secs = vd.local_build_and_run(
        mod, target, vd.get_runtime_device(target), vd.to_numpy(inputs)
    )
    np.testing.assert_allclose(outputs[1], 2 * outputs[0])
    assert secs and min(secs) > 0
    with pytest.raises(ValueError, match="expected a registered function, got 'nothing.here'"):
        vd.check_and_run("nothing.here")
    workload = ms.database.Workload(mod)
    trace = tvm.tir.Schedule(mod).trace
    assert vd.is_failed_record(TuningRecord(trace, workload, None, target))
    assert not vd.is_failed_record(TuningRecord(trace, workload, [1.0], target))
    vd.print_with_counter_func(2, 3)("fail: no", trace="the trace", seconds=1)
    assert capsys.readouterr().out.startswith("[2/3] fail: no seconds=1\nthe trace")


def test_candidates_without_a_time_are_measured(tmp_path):
    database = JSONDatabase(work_dir=str(tmp_path))
    mod = tvm.IRModule({"main": programs.doubled.with_attr("global_symbol", "main")})
    workload = database.commit_workload(mod)
    sch = tvm.tir.Schedule(mod)
    sch.vectorize(sch.split(sch.get_loops("B")[0], [None, 8])[1])
    database.commit_tuning_record(
        TuningRecord(sch.trace, workload, None, tvm.target.Target("llvm"))
    )
    assert measure_again(["--work-dir", str(tmp_path)]) == 1
    again = JSONDatabase(work_dir=str(tmp_path)).get_top_k(workload, 1)
    assert len(again) == 1 and float(again[0].run_secs[0]) > 0


def test_input_data():
    for dtype, top in (
        ("float32", 1),
        ("int8", 10),
        ("uint16", 10),
        ("bool", 2),
        ("bfloat16", 1.1),
    ):
        data = tune_utils.generate_input_data([4, 5], dtype)
        assert data.shape == (4, 5) and str(data.dtype) == dtype
        assert 0 <= data.astype("float64").min() and data.astype("float64").max() < top
    data = tune_utils.generate_input_data([100], "int32", low=5, high=7)
    assert set(data) <= {5, 6}
    with pytest.raises(ValueError, match="expected low < high, got 3 and 3"):
        tune_utils.generate_input_data([1], "int32", low=3, high=3)
    with pytest.raises(ValueError, match="expected a dtype, got 'float33'"):
        tune_utils.generate_input_data([1], "float33")


@pytest.mark.parametrize(
    "call",
    [
        lambda: tune_utils.create_calculator("vm"),
        LocalRPC,
        lambda: run_module_via_rpc(None, None, "cpu", {}, None),
    ],
)
def test_what_is_not_there_says_so(call):
    with pytest.raises(NotImplementedError, match="not available yet"):
        call()


@pytest.mark.parametrize(("shift", "verdict"), [(0.0, "pass"), (1.0, "wrong answer")])
def test_a_check_for_a_runner(tmp_path, shift, verdict):
    from tvm.meta_schedule.builder import BuilderInput, LocalBuilder
    from tvm.meta_schedule.runner import EvaluatorConfig, LocalRunner, RunnerInput
    from tvm.meta_schedule.testing.validate_database import (
        local_build_and_run,
        make_alloc_arg_and_check,
    )

    mod = ms.TuneContext(programs.doubled).mod
    inputs = [np.arange(256, dtype="float32"), np.zeros(256, "float32")]
    expected, secs = local_build_and_run(mod, "llvm", tvm.cpu(), inputs)
    log = str(tmp_path / "log")

    def print_result(result, **facts):
        with open(log, "w") as file:
            file.write(f"{result} {sorted(facts)}")

    alloc, run = make_alloc_arg_and_check(
        inputs, "before", "after", "trace", [e + shift for e in expected], secs, print_result
    )
    (built,) = LocalBuilder().build([BuilderInput(mod, tvm.target.Target("llvm"))])
    runner = LocalRunner(
        evaluator_config=EvaluatorConfig(1, 2, 0), f_alloc_argument=alloc, f_run_evaluator=run
    )
    args = ms.arg_info.ArgInfo.from_entry_func(mod)
    result = runner.run([RunnerInput(built.artifact_path, "cpu", args)])[0].result()
    assert result.error_msg is None and len(result.run_secs) == 2
    assert (tmp_path / "log").read_text().startswith(f"{verdict} ['original_mod', ")
