# SPDX-License-Identifier: Apache-2.0
"""Lines of progress, log files, how objects print, and what is left on the disk."""

import os
import subprocess
import sys
import time
import types

import pytest
import tvm
from tvm import meta_schedule as ms
from tvm.meta_schedule import progress, scratch
from tvm.target import Target

from tests.tune import programs

TARGET = Target("llvm -num-cores=2")


def context(func, name):
    return ms.TuneContext(
        func,
        target=TARGET,
        space_generator="post-order-apply",
        search_strategy="replay-trace",
        task_name=name,
        rand_state=1,
        num_threads=1,
    )


def test_every_round_has_a_line_of_its_task_and_every_task_a_log(tmp_path, capsys):
    tasks = [context(programs.sigmoid(), "first"), context(programs.row_sum(), "second")]
    database = ms.tune_tasks(
        tasks=tasks,
        task_weights=[1.0, 1.0],
        work_dir=str(tmp_path),
        max_trials_global=8,
        num_trials_per_iter=2,
        cost_model="random",
        task_scheduler="round-robin",
    )
    lines = capsys.readouterr().err.splitlines()
    rounds = [line.split(":")[0] for line in lines if ": best" in line]
    assert rounds == ["first", "second"] * 2
    assert [line.split()[0] for line in lines[-3:]] == ["task", "first", "second"]
    for i, name in enumerate(("first", "second")):
        text = (tmp_path / "logs" / f"task_0{i}_{name}.log").read_text()
        assert "trial 4: " in text and "time spent" in text and "Total" in text
    assert len(database) == 8


def test_a_logger_of_the_user_is_used(tmp_path, caplog):
    import logging

    mine = logging.getLogger("mine")
    task = ms.TuneContext(
        programs.sigmoid(),
        target=TARGET,
        space_generator="post-order-apply",
        search_strategy="replay-trace",
        logger=mine,
    )
    with caplog.at_level("INFO", logger="mine"):
        ms.tune_tasks(tasks=[task], task_weights=[1.0], work_dir=str(tmp_path), max_trials_global=1)
    assert any("trial 1: " in r.message for r in caplog.records if r.name == "mine")
    assert not list((tmp_path / "logs").glob("*.log"))


def test_time_left_counts_from_where_a_run_began():
    shown = progress.Progress(100)
    shown.begin(10)  # the others were made by an earlier run
    shown._begin = time.monotonic() - 5
    eta = shown._eta(types.SimpleNamespace(_trials_left=5))
    assert 4 < eta < 60
    shown.begin(10, deadline=time.monotonic() + 2)
    shown._begin = time.monotonic() - 5
    assert shown._eta(types.SimpleNamespace(_trials_left=5)) <= 2
    assert shown._eta(types.SimpleNamespace(_trials_left=10)) is None


def test_printing():
    mod = ms.TuneContext(programs.doubled).mod
    workload = ms.database.Workload(mod)
    assert str(workload) == f"meta_schedule.Workload(main, hash {ms.utils.shash2hex(mod)})"
    trace = tvm.tir.Schedule(mod).trace
    record = ms.database.TuningRecord(trace, workload, [1e-6, 3e-6], TARGET)
    assert str(record).startswith("meta_schedule.TuningRecord(2.00 us, the default schedule, ")
    assert "not measured" in str(ms.database.TuningRecord(trace, workload))
    failed = ms.database.TuningRecord(trace, workload, None, TARGET, None, "crashed")
    assert "failed: crashed" in str(failed)
    database = ms.database.MemoryDatabase()
    database.commit_tuning_record(record)
    for records in (database.get_top_k(workload, 3), database.get_all_tuning_records()):
        assert str(records) == f"[{record}]"
    candidate = record.as_measure_candidate()
    assert "MeasureCandidate(0 instructions, [TensorInfo(" in str(candidate)
    assert str(context(programs.doubled, "mine")).startswith("meta_schedule.TuneContext(mine, llvm")


def test_user_defined_parts_print_as_their_classes():
    class Rule(ms.schedule_rule.PyScheduleRule):
        def apply(self, sch, block):
            return [sch]

    assert str(ms.derived_object(Rule)()).startswith("meta_schedule.Rule(0x")
    Rule.__str__ = lambda self: "a rule of mine"
    assert str(ms.derived_object(Rule)()) == "a rule of mine"


LEAVES_FILES = """
import os, sys
sys.path.insert(0, {path!r})
from tvm.meta_schedule import scratch
scratch._place = lambda: sys.argv[1]
open(os.path.join(scratch.new_folder(), "lib.so"), "w").close()
print("made", flush=True)
sys.argv[2] == "killed" and os.kill(os.getpid(), 9)
"""


def run_scratch(tmp_path, how):
    code = LEAVES_FILES.format(path=os.path.dirname(os.path.dirname(tvm.__file__)))
    return subprocess.run([sys.executable, "-c", code, str(tmp_path), how], capture_output=True)


def test_libraries_do_not_outlive_processes(tmp_path, monkeypatch):
    assert run_scratch(tmp_path, "ended").stdout == b"made\n"
    assert os.listdir(tmp_path) == []
    assert run_scratch(tmp_path, "killed").stdout == b"made\n"
    (left,) = os.listdir(tmp_path)
    monkeypatch.setattr(scratch, "_place", lambda: str(tmp_path))
    scratch._root.cache_clear()
    try:
        mine = os.path.dirname(scratch.new_folder())
        assert os.listdir(tmp_path) == [os.path.basename(mine)] != [left]
        assert run_scratch(tmp_path, "ended").returncode == 0
        assert os.path.exists(mine)  # another one does not take it for abandoned
    finally:
        scratch._root.cache_clear()


@pytest.mark.parametrize("secs", [None, 3e-9, 2.5e-5, 0.012, 7.0])
def test_durations(secs):
    texts = {None: "-", 3e-9: "3.00 ns", 2.5e-5: "25.00 us", 0.012: "12.00 ms", 7.0: "7.00 s"}
    assert progress.duration(secs) == texts[secs]


def test_a_space_without_further_programs_says_so(tmp_path, capsys):
    def widths(sch):
        width = sch.sample_categorical([4, 8], [0.5, 0.5])
        sch.vectorize(sch.split(sch.get_loops("B")[0], [None, width])[1])

    database = ms.tune_tir(programs.doubled, TARGET, str(tmp_path), 32, space=widths)
    said = f"main: {len(database)} of 32 trials: the search found no further program that differs"
    assert len(database) <= 3 and said in capsys.readouterr().err
    assert said[6:] in (tmp_path / "logs" / "task_00_main.log").read_text()
