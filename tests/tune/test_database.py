# SPDX-License-Identifier: Apache-2.0
"""Databases: storing, ranking, querying, and files that were damaged."""

import json
import logging
import multiprocessing
import time

import pytest
import tvm
from tvm import meta_schedule as ms
from tvm.meta_schedule.database import (
    Database,
    JSONDatabase,
    MemoryDatabase,
    OrderedUnionDatabase,
    PyDatabase,
    ScheduleFnDatabase,
    TuningRecord,
    UnionDatabase,
    Workload,
)
from tvm.target import Target

from tests.tune import programs

TARGET = Target("llvm -num-cores=2")


def module(func=programs.doubled):
    return tvm.IRModule({"main": func.with_attr("global_symbol", "main")})


def trace(width, mod=None):
    sch = tvm.tir.Schedule(mod or module())
    (loop,) = sch.get_loops("B")
    _, inner = sch.split(loop, [None, width])
    sch.vectorize(inner)
    return sch.trace


def fill(database, times, mod=None, target=TARGET):
    mod = mod or module()
    workload = database.commit_workload(mod)
    for width, secs in times.items():
        database.commit_tuning_record(
            TuningRecord(
                trace(width, mod),
                workload,
                None if secs is None else [secs],
                target,
                ms.arg_info.ArgInfo.from_entry_func(mod),
            )
        )
    return workload


@pytest.fixture(params=["memory", "json"])
def database(request, tmp_path):
    return MemoryDatabase() if request.param == "memory" else JSONDatabase(work_dir=str(tmp_path))


def test_records_are_ranked(database):
    workload = fill(database, {4: 3.0, 8: 1.0, 16: None, 32: 2.0})
    assert len(database) == 4 and len(database.get_all_tuning_records()) == 4
    assert [r.run_secs[0].value for r in database.get_top_k(workload, 10)] == [1.0, 2.0, 3.0]
    assert len(database.get_top_k(workload, top_k=1)) == 1
    with pytest.raises(ValueError, match="expected top_k of at least 0, got -1"):
        database.get_top_k(workload, -1)


def test_every_commit_is_a_record(database):
    workload = fill(database, {4: 3.0, 8: 1.0})
    fill(database, {8: 5.0})
    assert len(database) == 3
    assert [r.run_secs[0].value for r in database.get_top_k(workload, 3)] == [1.0, 3.0, 5.0]


def test_races_decide_and_times_are_those_measured(database, tmp_path):
    workload = fill(database, {4: 3.0, 8: 1.0})
    default = tvm.tir.Schedule(module()).trace

    def race(trace, secs, verdict):
        database.commit_tuning_record(
            TuningRecord(trace, workload, [secs], TARGET, verdict=verdict)
        )

    race(default, 2.0, "raced")
    race(trace(8), 1.9, "no better than the default")
    race(trace(4), 2.5, "raced")

    def check(database):
        best = database.get_top_k(workload, 9)
        assert [r.run_secs[0].value for r in best] == [2.0, 1.9, 2.5]
        assert str(best[1].verdict) == "no better than the default"
        assert len(database) == 3

    check(database)
    if isinstance(database, JSONDatabase):
        check(JSONDatabase(work_dir=str(tmp_path)))
    with pytest.raises(ValueError, match="expected the verdict 'raced' or"):
        race(default, 1.0, "lucky")


def test_seconds_are_constants():
    workload = Workload(module())
    given = [tvm.tir.FloatImm("float32", 1.5), 2.5, 3, tvm.tir.IntImm("int32", 4)]
    for made in (
        TuningRecord(trace(4), workload, given),
        ms.runner.RunnerResult(given, None),
    ):
        assert [s.value for s in made.run_secs] == [1.5, 2.5, 3.0, 4.0]
    with pytest.raises(TypeError, match="run_secs: expected numbers, got"):
        TuningRecord(trace(4), workload, ["fast"])


def test_queries(database):
    mod = module()
    assert not database.has_workload(mod)
    assert database.query_schedule(mod, TARGET, "main") is None
    fill(database, {4: 3.0, 8: 1.0})
    assert database.has_workload(mod)
    assert database.query(mod, TARGET, kind="record").run_secs[0].value == 1.0
    scheduled = database.query_ir_module(mod, TARGET, "main")
    expected = tvm.tir.Schedule(mod)
    trace(8).apply_to_schedule(expected, False)
    tvm.ir.assert_structural_equal(scheduled, expected.mod)
    assert database.query_tuning_record(mod, Target("llvm -num-cores=7"), "main") is None
    with pytest.raises(
        ValueError, match="expected one of 'schedule'.*got 'scheduel'.*did you mean"
    ):
        database.query(mod, TARGET, kind="scheduel")


def test_the_current_database():
    assert Database.current() is None
    with MemoryDatabase() as outer:
        with MemoryDatabase() as inner:
            assert Database.current().same_as(inner)
        assert Database.current().same_as(outer)
    assert Database.current() is None


def test_unions_and_functions():
    fast, slow = MemoryDatabase(), MemoryDatabase()
    fill(fast, {4: 1.0})
    fill(slow, {8: 2.0})
    mod = module()
    assert (
        UnionDatabase(slow, fast).query_tuning_record(mod, TARGET, "main").run_secs[0].value == 1.0
    )
    ordered = OrderedUnionDatabase(slow, fast)
    assert ordered.query_tuning_record(mod, TARGET, "main").run_secs[0].value == 2.0
    with pytest.raises(NotImplementedError, match="expected a database that stores records itself"):
        ordered.get_all_tuning_records()

    def schedule(sch):
        sch.parallel(sch.get_loops("B")[0])
        return True

    found = ScheduleFnDatabase(schedule).query_ir_module(mod, TARGET, "main")
    assert "T.parallel" in found.script()
    assert ScheduleFnDatabase(lambda sch: False).query_schedule(mod, TARGET, "main") is None


def test_dump_pruned(database):
    workload = fill(database, {4: 3.0, 8: 1.0})
    best = MemoryDatabase()
    database.dump_pruned(best)
    assert [r.run_secs[0].value for r in best.get_all_tuning_records()] == [1.0]
    assert best.has_workload(workload.mod)


def test_a_database_defined_by_a_user():
    @ms.derived_object
    class Mine(PyDatabase):
        def __init__(self):
            self.inner, self.commits = MemoryDatabase(), 0

        def has_workload(self, mod):
            return self.inner.has_workload(mod)

        def commit_workload(self, mod):
            return self.inner.commit_workload(mod)

        def commit_tuning_record(self, record):
            self.commits += 1
            self.inner.commit_tuning_record(record)

        def get_top_k(self, workload, top_k):
            return self.inner.get_top_k(workload, top_k)

        def get_all_tuning_records(self):
            return self.inner.get_all_tuning_records()

        def __len__(self):
            return len(self.inner)

    mine = Mine()
    fill(mine, {4: 3.0, 8: 1.0})
    assert mine.commits == 2 and len(mine) == 2 and isinstance(mine, Database)
    assert mine.query_tuning_record(module(), TARGET, "main").run_secs[0].value == 1.0

    class Picky(Mine._user_class):
        def query_tuning_record(self, mod, target, workload_name=None):
            record = super().query_tuning_record(mod, target, workload_name)
            return record if record.run_secs[0].value < 2 else None

    picky = ms.derived_object(Picky)()
    fill(picky, {4: 3.0})
    assert picky.query_schedule(module(), TARGET, "main") is None
    fill(picky, {8: 1.0})
    assert "vectorized(8)" in picky.query_ir_module(module(), TARGET, "main").script()
    empty = ms.derived_object(type("Empty", (PyDatabase,), {}))()
    with pytest.raises(NotImplementedError, match="Empty: expected the method has_workload"):
        empty.has_workload(module())


def test_workloads_and_records_as_json():
    workload = Workload(module())
    again = Workload.from_json(workload.as_json())
    tvm.ir.assert_structural_equal(again.mod, workload.mod)
    record = TuningRecord(trace(8), workload, [1.5], TARGET)
    copy = TuningRecord.from_json(record.as_json(), workload)
    assert [s.value for s in copy.run_secs] == [1.5] and str(copy.target) == str(TARGET)
    assert str(copy.trace) == str(record.trace)


# ---- files --------------------------------------------------------------------------------------
def files(tmp_path):
    return tmp_path / "database_workload.json", tmp_path / "database_tuning_record.json"


def test_files_are_read_back(tmp_path):
    fill(JSONDatabase(work_dir=str(tmp_path)), {4: 3.0, 8: 1.0})
    workloads, records = files(tmp_path)
    assert len(workloads.read_text().splitlines()) == 1
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    assert [line["secs"] for line in lines] == [[3.0], [1.0]]
    assert lines[0]["version"] == tvm.__version__ and lines[0]["target"]["kind"] == "llvm"
    again = JSONDatabase(work_dir=str(tmp_path))
    assert repr(again).startswith("meta_schedule.JSONDatabase(0x")
    assert again.query_tuning_record(module(), TARGET, "main").run_secs[0].value == 1.0


def test_a_truncated_last_line_is_left_out(tmp_path, caplog):
    fill(JSONDatabase(work_dir=str(tmp_path)), {4: 3.0, 8: 1.0})
    _, records = files(tmp_path)
    whole = records.read_bytes()
    records.write_bytes(whole[:-30])
    with caplog.at_level(logging.WARNING):
        database = JSONDatabase(work_dir=str(tmp_path))
    assert "the last line of" in caplog.text and len(database) == 1
    assert records.read_bytes() == whole[:-30], "reading writes nothing"
    fill(database, {16: 2.0})
    assert len(JSONDatabase(work_dir=str(tmp_path))) == 2


def test_a_damaged_line_is_left_out(tmp_path, caplog):
    fill(JSONDatabase(work_dir=str(tmp_path)), {4: 3.0, 8: 1.0, 16: 2.0})
    _, records = files(tmp_path)
    lines = records.read_text().splitlines()
    lines[1] = "{]" + lines[1][:50]
    records.write_text("\n".join(lines) + "\n")
    with caplog.at_level(logging.WARNING):
        database = JSONDatabase(work_dir=str(tmp_path))
    assert "1 damaged line(s) left out, the first is line 2" in caplog.text
    assert [r.run_secs[0].value for r in database.get_all_tuning_records()] == [3.0, 2.0]


def test_damage_inside_a_trace_is_found_when_it_is_needed(tmp_path, caplog):
    workload = fill(JSONDatabase(work_dir=str(tmp_path)), {4: 3.0, 8: 1.0})
    _, records = files(tmp_path)
    records.write_text(records.read_text().replace('"Vectorize"', '"Vektorize"', 1))
    database = JSONDatabase(work_dir=str(tmp_path))
    with caplog.at_level(logging.WARNING):
        assert [r.run_secs[0].value for r in database.get_top_k(workload, 5)] == [1.0]
    assert "damaged" in caplog.text


def test_records_of_another_version_are_left_out(tmp_path, caplog):
    fill(JSONDatabase(work_dir=str(tmp_path)), {4: 3.0, 8: 1.0})
    _, records = files(tmp_path)
    lines = records.read_text().splitlines()
    lines[0] = lines[0].replace(f'"version": "{tvm.__version__}"', '"version": "0.0.0"')
    records.write_text("\n".join(lines) + "\n")
    with caplog.at_level(logging.WARNING):
        assert len(JSONDatabase(work_dir=str(tmp_path))) == 1
    assert "made by another version" in caplog.text


def test_lines_in_another_order_are_read(tmp_path):
    fill(JSONDatabase(work_dir=str(tmp_path)), {4: 3.0})
    _, records = files(tmp_path)
    line = json.loads(records.read_text())
    records.write_text(json.dumps(dict(reversed(line.items()))) + "\n")
    assert len(JSONDatabase(work_dir=str(tmp_path)).get_all_tuning_records()) == 1


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match="expected the file .* to exist"):
        JSONDatabase(work_dir=str(tmp_path / "none"), allow_missing=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot make the folder"):
        JSONDatabase(work_dir=str(tmp_path / "file" / "below"))
    with pytest.raises(ValueError, match="expected work_dir, or both"):
        JSONDatabase()
    with pytest.raises(ValueError, match="expected 'structural', .*got 'structurl'"):
        MemoryDatabase("structurl")


def _write(folder, begin):
    database = JSONDatabase(work_dir=folder)
    for i in range(20):
        fill(database, {8: 1.0 + i}, target=Target(f"llvm -num-cores={begin + i + 1}"))


def test_several_writers(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(str(tmp_path), 100 * i)) for i in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    _, records = files(tmp_path)
    assert len([json.loads(line) for line in records.read_text().splitlines()]) == 40
    assert len(JSONDatabase(work_dir=str(tmp_path))) == 40


def test_many_records_load_quickly(tmp_path):
    fill(JSONDatabase(work_dir=str(tmp_path)), {8: 1.0})
    _, records = files(tmp_path)
    line = records.read_text()
    assert '"secs": [1]' in line or '"secs": [1.0]' in line
    key = '"num-cores":2'
    assert key in line
    records.write_text("".join(line.replace(key, f'"num-cores":{i}') for i in range(100_000)))
    begin = time.perf_counter()
    database = JSONDatabase(work_dir=str(tmp_path))
    seconds = time.perf_counter() - begin
    assert len(database) == 100_000
    print(f"100,000 records in {seconds:.2f} s")


def test_anchor_block_equality():
    database = MemoryDatabase("anchor-block")
    plain = module(programs.matmul(8, 8, 8))
    database.commit_workload(plain)
    A = tvm.te.placeholder((8, 8), name="A")
    B = tvm.te.placeholder((8, 8), name="B")
    r = tvm.te.reduce_axis((0, 8), name="r")
    C = tvm.te.compute((8, 8), lambda i, j: tvm.te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = tvm.te.compute((8, 8), lambda i, j: C[i, j] + 1.0, name="D")
    assert database.has_workload(module(tvm.te.create_prim_func([A, B, D])))
    assert not MemoryDatabase().has_workload(plain)
