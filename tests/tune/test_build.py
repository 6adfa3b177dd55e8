# SPDX-License-Identifier: Apache-2.0
"""Building on threads, runners with functions of the user, disks that are full."""

import resource
import signal
import threading

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import meta_schedule as ms
from tvm.meta_schedule.arg_info import TensorInfo
from tvm.meta_schedule.builder import BuilderInput, LocalBuilder
from tvm.meta_schedule.database import JSONDatabase, TuningRecord
from tvm.meta_schedule.runner import EvaluatorConfig, LocalRunner, RunnerInput
from tvm.meta_schedule.runner.utils import alloc_argument_common, run_evaluator_common
from tvm.meta_schedule.utils import remove_build_dir

from tests.tune import programs

TARGET = tvm.target.Target(tvm.testing.host_target("-num-cores=2"))


def module(name):
    func = programs.sigmoid().with_attr("global_symbol", name)
    return tvm.IRModule({name: func})


def test_a_compilation_without_end_is_given_up():
    goes_on = threading.Event()

    @tvm.tir.transform.prim_func_pass(opt_level=0)
    def hang(func, mod, ctx):
        if func.attrs["global_symbol"] == "hangs":
            goes_on.wait(60)
        return func

    builder = LocalBuilder(max_workers=1, timeout_sec=10)
    inputs = [BuilderInput(module(name), TARGET) for name in ("hangs", "builds")]
    # Options of the caller's context reach the threads, or nothing would hang.
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [[0, hang]]}):
        first, second = builder.build(inputs)
    goes_on.set()
    assert first.artifact_path is None
    assert str(first.error_msg) == "timed out: not compiled after 10 s"
    assert second.error_msg is None
    remove_build_dir(str(second.artifact_path))
    with pytest.raises(ValueError, match="expected a positive timeout_sec, got 0"):
        LocalBuilder(timeout_sec=0)


def test_candidates_do_not_fill_the_disk_cache(tmp_path):
    import os
    import subprocess
    import sys

    code = (
        "import tvm\n"
        "from tests.tune.test_build import *\n"
        "result = LocalBuilder().build([BuilderInput(module('main'), TARGET)])[0]\n"
        "assert result.error_msg is None\n"
        "remove_build_dir(str(result.artifact_path))\n"
    )
    env = {**os.environ, "TVM_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    assert not (tmp_path / "cache").exists()


def _alloc(device, args_info, alloc_repeat):
    import tvm

    def fill(tensor):
        tensor.copyfrom(np.ones(tuple(tensor.shape), "float32"))

    assert tvm.cpu(0) == device
    return alloc_argument_common(fill, device, args_info, alloc_repeat)


def _run(rt_mod, device, config, repeated_args):
    secs = run_evaluator_common(rt_mod, device, config, repeated_args)
    assert np.allclose(repeated_args[0][1].numpy(), 1 / (1 + np.exp(-1.0)))
    return [*secs, 42.0]


def test_a_runner_with_functions_of_the_user(tmp_path):
    path = str(tmp_path / "lib.so")
    tvm.compile(programs.sigmoid(), target=TARGET).export_library(path)
    args = [TensorInfo("float32", [64, 64])] * 2
    config = EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0)
    runner = LocalRunner(
        evaluator_config=config, alloc_repeat=2, f_alloc_argument=_alloc, f_run_evaluator=_run
    )
    result = runner.run([RunnerInput(path, "cpu", args)])[0].result()
    assert result.error_msg is None
    assert len(result.run_secs) == 5 and result.run_secs[-1].value == 42.0


def test_a_full_disk_costs_the_record_on_disk_only(tmp_path):
    database = JSONDatabase(work_dir=str(tmp_path))
    mod = ms.TuneContext(programs.sigmoid()).mod
    workload = database.commit_workload(mod)
    record = TuningRecord(tvm.tir.Schedule(mod).trace, workload, [1.0], TARGET)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then writing is an error, as there
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
        with pytest.raises(OSError, match="database_tuning_record.json"):
            database.commit_tuning_record(record)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert len(database) == 1
    database.commit_tuning_record(record)
    assert len(JSONDatabase(work_dir=str(tmp_path))) == 1


def test_records_of_another_machine_are_kept_and_not_used(tmp_path):
    other = "llvm -mcpu=x86-64 -num-cores=7"
    first = ms.tune_tir(programs.sigmoid(), TARGET, str(tmp_path), 3, cost_model="random", seed=1)
    again = ms.tune_tir(programs.sigmoid(), other, str(tmp_path), 3, cost_model="random", seed=1)
    assert len(first) == 3 and len(again) == 6
    targets = {str(r.target) for r in again.get_all_tuning_records()}
    assert len(targets) == 2
    assert ms.compile_tir(again, programs.sigmoid(), "llvm -num-cores=3") is None


def test_register_tiling_offers_tiles_and_packed_operands():
    context = ms.TuneContext(programs.matmul(64, 64, 64), target="llvm -mcpu=x86-64-v4")
    rule = ms.schedule_rule.RegisterTiling()
    rule._initialize_with_tune_context(context)
    sch = tvm.tir.Schedule(context.mod, seed=1)
    untouched, *tiled = rule.apply(sch, sch.get_block("C"))
    assert len(untouched.trace.decisions) == 0
    widths = set()
    for space in tiled:
        loops = [space.get(loop) for loop in space.get_loops("C_update")]
        assert loops[0].kind == tvm.tir.ForKind.PARALLEL
        assert loops[-1].kind == tvm.tir.ForKind.VECTORIZED
        widths.add((int(loops[-2].extent), "B_global" in str(space.mod)))
    assert {(1, False), (2, True), (4, False), (4, True)} <= widths
