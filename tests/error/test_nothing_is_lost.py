# SPDX-License-Identifier: Apache-2.0
"""Whatever cleans up removes what it made itself, and nothing beside it."""

import os
import subprocess
import sys

import pytest
import tvm
from tvm import meta_schedule as ms
from tvm.ir import instrument, transform
from tvm.meta_schedule import scratch
from tvm.meta_schedule.builder import BuilderResult, PyBuilder
from tvm.support import tar, utils

from tests.tune import programs


@pytest.fixture
def precious(tmp_path):
    """A user's file, which must be there and the same afterwards."""
    file = tmp_path / "precious"
    file.write_text("years of work")
    yield file
    assert file.read_text() == "years of work"


def test_a_library_of_a_users_builder_stays_with_its_neighbours(precious, tmp_path):
    library = tmp_path / "x.tar"
    library.write_text("a library")
    ms.utils.remove_build_dir(str(library))
    callback = ms.measure_callback.RemoveBuildArtifact()
    callback.apply(None, 0, [], [BuilderResult(str(library), None)], [])
    assert library.read_text() == "a library"


def test_tuning_with_a_builder_of_ones_own(precious, tmp_path):
    @ms.derived_object
    class Mine(PyBuilder):
        def build(self, build_inputs):
            made = []
            for i, item in enumerate(build_inputs):
                path = str(tmp_path / f"{i}.so")
                tvm.tir.build(item.mod, target=item.target).export_library(path)
                made.append(BuilderResult(path, None))
            return made

    mod = tvm.IRModule({"main": programs.doubled.with_attr("global_symbol", "main")})
    target = tvm.target.Target("llvm -num-cores=1")
    ms.tune_tir(mod, target, str(tmp_path / "work"), 2, builder=Mine(), num_trials_per_iter=2)
    assert (tmp_path / "0.so").exists()


def test_a_library_of_the_tuner_is_removed_with_its_folder():
    folder = scratch.new_folder()
    neighbour = scratch.new_folder()
    open(os.path.join(folder, "lib.so"), "w").close()
    ms.utils.remove_build_dir(os.path.join(folder, "lib.so"))
    assert not os.path.exists(folder) and os.path.exists(neighbour)
    # The folder of the process is no folder of a library.
    ms.utils.remove_build_dir(folder)
    assert os.path.exists(neighbour)


def test_folders_that_only_look_like_those_of_a_tuner_stay(tmp_path):
    mine = tmp_path / "tvm-tune-results"
    mine.mkdir()
    (mine / "lock").write_text("")
    (mine / "results").write_text("all of them")
    scratch._sweep(str(tmp_path))
    assert (mine / "results").read_text() == "all of them"


def test_a_temporary_folder_is_removed_where_it_was_made(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    (there / "work").mkdir()
    (there / "work" / "precious").touch()
    monkeypatch.chdir(here)
    temp = utils.tempdir("work")
    monkeypatch.chdir(there)
    temp.remove()
    assert (there / "work" / "precious").exists() and not (here / "work").exists()


def test_refreshed_dumps_leave_other_scripts(precious, tmp_path):
    own = tmp_path / "001_experiment.py"
    own.write_text("print('mine')\n")
    for _ in range(2):
        with transform.PassContext(instruments=[instrument.DumpIR(tmp_path, refresh=True)]):
            tvm.tir.transform.Simplify()(tvm.IRModule({"main": programs.doubled}))
    assert own.read_text() == "print('mine')\n"
    assert sorted(p.name for p in tmp_path.glob("*.py")) == ["000_tir.Simplify.py", own.name]


def test_a_refused_archive_leaves_the_folder(precious, tmp_path):
    bad = tmp_path / "bad.tar"
    bad.write_text("no archive")
    with pytest.raises(ValueError, match="untar"):
        tar.untar(bad, tmp_path)


def test_a_database_file_that_is_none_stays_as_it_is(tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("first line\nlast line without an end")
    ms.database.JSONDatabase(str(notes), str(notes))
    assert notes.read_text() == "first line\nlast line without an end"


CLEARS = """
import tvm
tvm.get_global_func("runtime.clear_cache")()
"""


def test_the_cache_removes_its_entries_alone(precious, tmp_path):
    others = [tmp_path / name for name in ("my.entry", "notes.entry.txt", "0" * 24 + ".entry.txt")]
    ours = tmp_path / ("0123456789abcdef" + "00000010.entry")
    for file in [*others, ours]:
        file.write_text("text")
    env = {**os.environ, "TVM_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", CLEARS], env=env, check=True)
    assert all(file.exists() for file in others) and not ours.exists()
