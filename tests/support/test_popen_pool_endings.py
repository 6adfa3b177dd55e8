# SPDX-License-Identifier: Apache-2.0
"""Nothing outlives the process that owns a pool, and nothing leaks in one that goes on."""

import gc
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from tvm.support._fork_server import _children
from tvm.support.popen_pool import PopenPoolExecutor, StatusKind

from tests.support.processes import is_running, wait_until

# Prints the server's pid, those of two busy workers, and of a process that each has started.
OWNER = """
import os, subprocess, sys, time, signal
sys.modules["torch"] = None  # tvm_ffi would import it, for seconds
from tvm.support.popen_pool import PopenPoolExecutor

def busy(path):
    child = subprocess.Popen(["sleep", "60"])
    with open(path, "w") as file:
        file.write(f"{os.getppid()} {os.getpid()} {child.pid}")
    os.rename(path, path + ".ready")
    time.sleep(60)

pool = PopenPoolExecutor(2, timeout=60)
files = [sys.argv[1] + "/a", sys.argv[1] + "/b"]
futures = [pool.submit(busy, file) for file in files]
while not all(os.path.exists(f + ".ready") for f in files):
    time.sleep(0.01)
print(*[open(f + ".ready").read() for f in files], flush=True)
"""


def wait_gone(pids):
    """Those that are still there after all the time they may take."""
    wait_until(lambda: not any(is_running(pid) for pid in pids))
    return [pid for pid in pids if is_running(pid)]


def start_owner(ending, folder):
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER + ending, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 6, process.stderr.read()
    return process, pids


@pytest.mark.parametrize(
    "ending",
    [
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "os.kill(os.getpid(), signal.SIGSEGV)",
        "os._exit(0)",
        "pool.shutdown(kill=True)",
        "raise KeyboardInterrupt",
        # A fork that goes on holds every descriptor that its parent had.
        "import ctypes\nif ctypes.CDLL(None).fork(): os._exit(0)\ntime.sleep(3); os._exit(0)",
    ],
)
def test_nothing_outlives_the_owner(ending, tmp_path):
    process, pids = start_owner(ending, tmp_path)
    process.wait(20)
    left = wait_gone(pids)
    process.communicate()
    assert left == []


@pytest.mark.parametrize(
    "waiting",
    [
        "futures[0].result()",
        "pool.shutdown()",
        "with pool: futures[0].result()",
        "for result in pool.map_with_error_catching(time.sleep, [60] * 9): pass",
    ],
)
def test_ctrl_c(waiting, tmp_path):
    process, pids = start_owner(waiting, tmp_path)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1 and errors.endswith("KeyboardInterrupt\n")
    assert wait_gone(pids) == []


def test_work_that_nobody_waits_for_is_done_before_a_normal_end(tmp_path):
    script = """
import pathlib, sys, time
sys.modules["torch"] = None
from tvm.support.popen_pool import PopenPoolExecutor

def touch(name):
    time.sleep(0.1)
    pathlib.Path(name).touch()

pool = PopenPoolExecutor(1)
for name in "012":
    pool.submit(touch, f"{sys.argv[1]}/{name}")
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=60)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0", "1", "2"]


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_stress(count=1000):
    """Random crashes, kills from outside, and time limits between tasks that must succeed."""

    def task(kind, value):
        if kind == "crash":
            os.kill(os.getpid(), random.choice([signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT]))
        elif kind == "exit":
            os._exit(value % 256)
        elif kind == "hang":
            time.sleep(60)
        elif kind == "raise":
            raise ValueError(value)
        elif kind == "spawn":
            subprocess.Popen(["sleep", "60"])
        elif kind == "large":
            return value, bytes(1 << 20)
        return value, os.getpid()

    rng = random.Random(count)
    kinds = ["good"] * 24 + ["large", "raise", "crash", "exit", "hang", "spawn"]
    gc.collect()  # what earlier tests left
    with PopenPoolExecutor(1) as warm:  # the server and its socket stay
        server = warm.submit(os.getppid).result()
    before, threads = descriptors(), threading.active_count()
    pool = PopenPoolExecutor(4, timeout=0.5, maximum_process_uses=20)
    plan = [(rng.choice(kinds), i) for i in range(count)]
    futures = [pool.submit(task, *p) for p in plan]
    killed, stop = 0, threading.Event()

    def killer():
        nonlocal killed
        while not stop.wait(0.2):
            victims = _children(server)
            if victims:
                os.kill(rng.choice(victims), signal.SIGKILL)
                killed += 1

    thread = threading.Thread(target=killer)
    thread.start()
    outcomes = []
    for future, (kind, i) in zip(futures, plan, strict=True):
        error = future.exception(timeout=60)
        outcomes.append(error)
        if error is None:
            assert kind in ("good", "large", "spawn") and future.result()[0] == i
        elif kind == "raise" and isinstance(error, ValueError):
            assert error.args == (i,)
        elif kind == "hang":
            assert isinstance(error, TimeoutError | ChildProcessError)
        else:
            # A victim of the killer, or on a slow machine of the clock.
            assert isinstance(error, ChildProcessError | TimeoutError)
    stop.set()
    thread.join()
    pool.shutdown()
    assert sum(error is None for error in outcomes) > count / 2 and killed
    assert {ChildProcessError, TimeoutError, ValueError} <= set(map(type, outcomes))
    below = pathlib.Path(f"/proc/{server}/task/{server}/children")  # zombies, too
    end = time.monotonic() + 10
    while below.read_text().split() and time.monotonic() < end:
        time.sleep(0.01)
    assert below.read_text().split() == []
    assert _children(os.getpid()).count(server) == 1 and is_running(server)
    assert len(os.listdir(f"/proc/{server}/fd")) <= 8
    del pool, futures
    assert descriptors() == before and threading.active_count() == threads


def test_status_kinds_are_numbered():
    assert [int(kind) for kind in StatusKind] == [0, 1, 2, 3]
