# SPDX-License-Identifier: Apache-2.0
"""Building and running candidates, also such as crash, hang, blow up or are wrong."""

import os

import pytest
import tvm
import tvm.testing
from tvm import meta_schedule as ms
from tvm.meta_schedule.arg_info import ArgInfo, TensorInfo
from tvm.meta_schedule.builder import BuilderInput, LocalBuilder
from tvm.meta_schedule.runner import EvaluatorConfig, LocalRunner, RPCRunner, RunnerInput
from tvm.meta_schedule.task_scheduler.loop import beats
from tvm.target import Target

from tests.tune import programs

TARGET = tvm.testing.host_target("-num-cores=2")
ARGS = [TensorInfo("float32", [256])] * 2


def build(func, folder):
    path = str(folder / f"{func.attrs['global_symbol']}.so")
    tvm.compile(func, target=TARGET).export_library(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("libraries")


@pytest.fixture(scope="module")
def runner():
    return LocalRunner(timeout_sec=4, memory_limit_mb=256)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("nearly_doubled", "wrong result: argument 1, element 255"),
        ("aborts", "crashed: signal 6"),
        ("out_of_bounds", "crashed: signal 11"),
        ("never_ends", "timed out after 4.0 s"),
        ("allocates_for_ever", "crashed: signal"),
    ],
)
def test_a_bad_candidate_is_reported_and_the_next_one_measured(program, reason, folder, runner):
    good = build(programs.doubled, folder)
    bad = build(getattr(programs, program), folder)
    inputs = [RunnerInput(path, "cpu", ARGS, good) for path in (bad, good)]
    first, second = [future.result() for future in runner.run(inputs)]
    assert first.run_secs is None and reason in first.error_msg
    assert second.error_msg is None and 0 < second.run_secs[0] < 0.1


def test_a_candidate_much_slower_than_the_best_is_stopped(folder):
    good, bad = build(programs.doubled, folder), build(programs.never_ends, folder)
    runner = LocalRunner(timeout_sec=600)  # which it does not take
    inputs = [RunnerInput(path, "cpu", ARGS, good) for path in (good, bad, good)]
    first, second, third = [future.result() for future in runner.run(inputs)]
    assert first.error_msg is None and third.error_msg is None
    assert second.error_msg == "stopped: more than 5 times as slow as the best so far"


def test_without_reference_nothing_is_compared(folder, runner):
    path = build(programs.nearly_doubled, folder)
    assert runner.run([RunnerInput(path, "cpu", ARGS)])[0].result().error_msg is None


def test_hopeless_candidates_cost_few_calls(folder):
    path = build(programs.counted, folder)
    runner = LocalRunner()
    calls = {}
    for best in (None, 1e-9):
        before = len(printed(runner))
        result = runner.run([RunnerInput(path, "cpu", ARGS, None, best)])[0].result()
        assert result.error_msg is None
        calls[best] = len(printed(runner)) - before
    assert calls[1e-9] <= 2 and calls[None] >= 4


def printed(runner):
    """What candidates wrote to standard error so far."""
    errors = getattr(runner._process, "_errors", None)
    return b"" if errors is None else os.pread(errors.fileno(), 1 << 24, 0)


def test_a_fixed_configuration_is_followed(folder):
    path = build(programs.doubled, folder)
    runner = LocalRunner(evaluator_config=EvaluatorConfig(number=2, repeat=3, min_repeat_ms=1))
    result = runner.run([RunnerInput(path, "cpu", ARGS)])[0].result()
    assert len(result.run_secs) == 3
    with pytest.raises(ValueError, match="expected number and repeat of at least 1"):
        LocalRunner(evaluator_config=EvaluatorConfig(number=0))


def test_candidates_race(folder, runner):
    good = build(programs.doubled, folder)
    results = runner.race([RunnerInput(good, "cpu", ARGS, good)] * 3, 0.05)
    assert [r.result().error_msg for r in results] == [None] * 3
    times = [[float(s) for s in r.result().run_secs] for r in results]
    assert {len(t) for t in times} == {3}  # places of the arguments
    assert all(0 < s < 0.1 for t in times for s in t)


def test_who_has_lost_a_race_leaves_it(folder):
    fast, slow = build(programs.doubled, folder), build(programs.counted, folder)
    runner = LocalRunner()
    inputs = [RunnerInput(path, "cpu", ARGS, fast) for path in (slow, fast, slow)]
    first, second, third = [f.result().run_secs for f in runner.race(inputs, 0.2)]
    assert min(map(float, first)) > min(map(float, second)) < min(map(float, third))
    alone = runner.race(inputs[1:2], 0.2)[0].result()
    assert len(alone.run_secs) == 3


def test_the_default_is_beaten_only_by_more_than_noise():
    assert beats([9e-6, 9e-6], [1e-5, 1e-5])
    assert not beats([9.9e-6, 9.9e-6], [1e-5, 1e-5])  # within the noise
    assert not beats([5e-6, 1.1e-5], [1e-5, 1e-5])  # slower in one place
    assert beats([5e-6, 1.01e-5], [1e-5, 1e-5])  # slower by less than the noise


def test_a_runner_of_another_device_says_so(folder, runner):
    path = build(programs.doubled, folder)
    result = runner.run([RunnerInput(path, "cuda", ARGS)])[0].result()
    assert "expected the device 'cpu', got 'cuda'" in result.error_msg
    with pytest.raises(NotImplementedError, match="remote measuring is not available yet"):
        RPCRunner().run([])


def test_builder_reports_errors_per_module():
    good = tvm.IRModule({"main": programs.doubled.with_attr("global_symbol", "main")})
    bad = tvm.IRModule({"main": programs.doubled.with_attr("global_symbol", "main")})
    results = LocalBuilder(max_workers=2).build(
        [BuilderInput(good, Target(TARGET)), BuilderInput(bad, Target("cuda"))]
    )
    assert results[0].error_msg is None and os.path.exists(results[0].artifact_path)
    assert results[1].artifact_path is None and "cuda" in results[1].error_msg
    ms.utils.remove_build_dir(results[0].artifact_path)
    assert not os.path.exists(results[0].artifact_path)


def test_builder_with_functions_of_the_user():
    def fails(mod, target, params):
        raise ArithmeticError("no")

    mod = tvm.IRModule({"main": programs.doubled.with_attr("global_symbol", "main")})
    inputs = [BuilderInput(mod, Target(TARGET))]
    assert "ArithmeticError: no" in LocalBuilder(f_build=fails).build(inputs)[0].error_msg
    named = LocalBuilder(f_build="meta_schedule.builder.default_build").build(inputs)[0]
    assert named.error_msg is None
    ms.utils.remove_build_dir(named.artifact_path)


def test_arg_info():
    infos = ArgInfo.from_prim_func(programs.matmul(4, 8, 16))
    assert [list(i.shape) for i in infos] == [[4, 16], [16, 8], [4, 8]]
    json = infos[0].as_json()
    assert [json[0], json[1], list(json[2])] == ["TENSOR", "float32", [4, 16]]
    assert ArgInfo.from_json(json).dtype == "float32"
    n = tvm.te.size_var("n")
    A = tvm.te.placeholder((n,), name="A")
    dynamic = tvm.te.create_prim_func([A, tvm.te.compute((n,), lambda i: A[i] + 1, name="B")])
    with pytest.raises(ValueError, match="expected tensors of constant shape.*'A'"):
        ArgInfo.from_prim_func(dynamic)


def test_kinds_are_named_in_errors():
    for family in (ms.Builder, ms.Runner, ms.CostModel, ms.TaskScheduler, ms.SearchStrategy):
        with pytest.raises(ValueError, match="expected one of 'l?.*got 'locl'"):
            family.create("locl")


def test_a_process_that_cannot_start_says_why(monkeypatch, tmp_path):
    from tvm.meta_schedule.runner import measure_process

    monkeypatch.setattr(measure_process._libs, "find", lambda name: tmp_path / "missing.so")
    reply = measure_process.MeasureProcess().request({}, 1.0)
    assert "the measuring process was lost" in reply["error"]
    assert "missing.so" in reply["error"]
