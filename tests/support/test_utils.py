# SPDX-License-Identifier: Apache-2.0
"""Temporary folders and locks between processes."""

import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest
from tvm.support import utils
from tvm.support.utils import FileLock, TempDirectory


def run(script, *args, **kwargs):
    script = "import sys; sys.modules['torch'] = None\n" + script
    command = [sys.executable, "-c", script, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, **kwargs)


def test_folder_goes_with_its_object():
    temp = utils.tempdir()
    path = temp.path
    (temp / "file").write_text("x")
    assert temp.relpath("file") == str(path / "file") and temp.listdir() == ["file"]
    assert temp.temp_dir in TempDirectory.TEMPDIRS
    del temp
    gc.collect()
    assert not path.exists() and str(path) not in TempDirectory.TEMPDIRS


def test_folder_goes_with_its_context():
    with utils.tempdir() as temp:
        path = temp.path
        assert path.is_dir()
    assert not path.exists()
    temp.remove()


def test_custom_path_must_be_new(tmp_path):
    with utils.tempdir(tmp_path / "mine") as temp:
        assert temp.path == tmp_path / "mine" and temp.path.is_dir()
    assert not (tmp_path / "mine").exists()
    (tmp_path / "precious").touch()
    with pytest.raises(FileExistsError):
        utils.tempdir(tmp_path)
    assert (tmp_path / "precious").exists()


def test_kept_folders(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(TempDirectory, "_kept_parent", None)
    with TempDirectory.set_keep_for_debug():
        first, second = utils.tempdir(), utils.tempdir(keep_for_debug=False)
        with TempDirectory.set_keep_for_debug(False):
            assert utils.tempdir()._kept is False
    third = utils.tempdir(keep_for_debug=True)
    paths = first.path, second.path, third.path
    assert paths[0].parent == paths[2].parent and "tvm-debug" in paths[0].parent.name
    for temp in (first, second, third):
        temp.remove()
    assert [p.exists() for p in paths] == [True, False, True]
    assert caplog.text.count("temporary folders stay in") == 1


def test_exit_removes_what_is_left_and_refuses_more():
    done = run(
        "import atexit, gc\n"
        "from tvm.support import utils\n"
        "def late():\n"
        "    try:\n"
        "        utils.tempdir()\n"
        "    except utils.DirectoryCreatedPastAtExit as error:\n"
        "        print(error)\n"
        "import atexit; atexit._clear(); atexit.register(late)\n"
        "atexit.register(utils.TempDirectory.remove_tempdirs)\n"
        "kept = utils.tempdir(); kept.me = kept; gc.disable(); print(kept.path)\n"
    )
    path, error = done.stdout.splitlines()
    assert "tvm-" in path and not os.path.exists(path), done.stderr
    assert error == "TempDirectory: the program has run its exit handlers"


def test_fork_does_not_remove_the_folder():
    temp = utils.tempdir()
    child = os.fork()
    if child == 0:
        try:
            temp.remove()
            TempDirectory.remove_tempdirs()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert temp.path.is_dir()


def test_lock_keeps_the_file_and_its_content(tmp_path):
    path = tmp_path / "data"
    path.write_text("precious")
    utils.filelock(str(path)).release()
    assert path.read_text() == "precious"
    with utils.filelock(tmp_path / "new"):
        assert (tmp_path / "new").exists()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        utils.filelock(tmp_path / "nowhere" / "lock")


def test_lock_excludes_threads(tmp_path):
    inside, most = 0, 0

    def enter():
        nonlocal inside, most
        for _ in range(5):
            with FileLock(tmp_path / "lock"):
                inside += 1
                most = max(most, inside)
                time.sleep(0.001)
                inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_lock_excludes_processes(tmp_path):
    """Without a lock, reading and writing a counter loses counts."""
    (tmp_path / "counter").write_text("0")
    script = (
        "import sys, pathlib; sys.modules['torch'] = None\n"
        "from tvm.support.utils import FileLock\n"
        "file = pathlib.Path(sys.argv[1], 'counter')\n"
        "for _ in range(50):\n"
        "    with FileLock(sys.argv[1] + '/lock'):\n"
        "        file.write_text(str(int(file.read_text()) + 1))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert (tmp_path / "counter").read_text() == "150"


@pytest.mark.parametrize("forked", [False, True])
def test_lock_ends_with_its_holder(tmp_path, forked):
    script = (
        "import os, sys, time; sys.modules['torch'] = None\n"
        "from tvm.support.utils import FileLock\n"
        "lock = FileLock(sys.argv[1])\n"
        "if sys.argv[2] == 'True' and os.fork() == 0:\n"
        "    time.sleep(2); os._exit(0)\n"
        "print('held', flush=True); time.sleep(60)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "lock"), str(forked)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        got = threading.Event()
        thread = threading.Thread(
            target=lambda: (FileLock(tmp_path / "lock").release(), got.set()), daemon=True
        )
        thread.start()
        assert not got.wait(0.2)
        holder.send_signal(signal.SIGKILL)
        assert got.wait(1.5)


@pytest.mark.parametrize(
    "path, expected",
    [("a.c", True), ("b/a.cc", True), ("a.cpp", True), ("a.cu", True), (pathlib.Path("a.c"), True)]
    + [("a.o", False), ("c", False), ("a.c/o", False), ("a.so", False), ("a.ll", False)],
)
def test_is_source_path(path, expected):
    assert utils.is_source_path(path) is expected


def test_which():
    assert os.path.isabs(utils.which("sh")) and utils.which("no-such-program") is None
