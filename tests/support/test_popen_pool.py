# SPDX-License-Identifier: Apache-2.0
"""Workers and pools: results, errors, time limits, recycling, streams, bad arguments."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest
from tvm.support import _fork_server, popen_pool
from tvm.support.popen_pool import MapResult, PopenPoolExecutor, PopenWorker, StatusKind

from tests.support.processes import is_running, wait_until


def call(worker, fn, *args, timeout=None, **kwargs):
    worker.send(fn, args, kwargs, timeout)
    return worker.recv()


@pytest.fixture
def worker():
    worker = PopenWorker()
    yield worker
    worker.kill()


def test_worker_runs_closures_and_keeps_its_process(worker):
    scale = 3
    assert not worker.is_alive()
    assert call(worker, lambda x, y=0: scale * x + y, 5, y=1) == 16
    pid = call(worker, os.getpid)
    assert pid != os.getpid() and call(worker, os.getpid) == pid and worker.is_alive()


def test_worker_does_not_load_the_compiler(worker):
    assert call(worker, lambda: [m for m in sys.modules if m.startswith("tvm")]) == []
    assert call(worker, lambda: __import__("tvm").__version__)  # on request it is there


def test_worker_has_the_environment_folder_and_path_of_its_start(worker, monkeypatch, tmp_path):
    monkeypatch.setenv("POPEN_POOL_TEST", "yes")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("/nowhere/modules")
    seen = call(
        worker, lambda: (os.environ["POPEN_POOL_TEST"], os.getcwd(), sys.path[0], sys.stdin.read())
    )
    assert seen == ("yes", str(tmp_path), "/nowhere/modules", "")


def test_large_messages(worker):
    data = os.urandom(1 << 20) * 8
    assert call(worker, lambda x: x, data) == data


def test_exception_of_a_task_tells_where(worker):
    def fails():
        raise KeyError("wanted")

    with pytest.raises(KeyError, match="wanted") as caught:
        call(worker, fails)
    assert "in the worker process:" in caught.value.__notes__[0]
    assert 'raise KeyError("wanted")' in caught.value.__notes__[0]
    assert call(worker, lambda: 1) == 1


def test_exception_that_cannot_be_pickled_arrives_as_text(worker):
    class Holds(Exception):
        def __init__(self, a, b):
            super().__init__(f"{a} and {b}")
            self.lock = threading.Lock()

    def fails():
        raise Holds("one", "two")

    with pytest.raises(RuntimeError, match="Holds: one and two"):
        call(worker, fails)


def test_exception_that_cannot_be_rebuilt_arrives_as_text(worker):
    class TwoArguments(Exception):
        def __init__(self, a, b):
            super().__init__(a + b)

    def fails():
        raise TwoArguments("one", "two")

    with pytest.raises(RuntimeError, match="TwoArguments: onetwo"):
        call(worker, fails)


def test_what_cannot_be_pickled_is_a_type_error(worker):
    lock = threading.Lock()
    with pytest.raises(TypeError, match="send: expected a function and arguments that can be p"):
        worker.send(lambda: lock)
    with pytest.raises(TypeError, match="arguments that can be pickled.*lock"):
        worker.send(len, [lock])
    with pytest.raises(TypeError, match="send: expected a function, got int"):
        worker.send(3)
    with pytest.raises(TypeError, match="expected a result that can be pickled, got lock"):
        call(worker, lambda: threading.Lock())
    assert call(worker, lambda: 1) == 1


def test_send_and_recv_alternate(worker):
    with pytest.raises(RuntimeError, match="recv: expected a send before it"):
        worker.recv()
    worker.send(lambda: 1)
    with pytest.raises(RuntimeError, match="send: expected a recv after the last send"):
        worker.send(lambda: 2)
    assert worker.recv() == 1


@pytest.mark.parametrize("sleep", [lambda: time.sleep(60), lambda: signal.pause()])
def test_time_limit_ends_the_process(worker, sleep):
    pid = call(worker, os.getpid)
    begin = time.monotonic()
    with pytest.raises(TimeoutError, match="the task took longer than 0.1 s"):
        call(worker, sleep, timeout=0.1)
    assert time.monotonic() - begin < 5
    assert not is_running(pid)
    assert call(worker, lambda: 7, timeout=60) == 7


def test_time_limit_ends_what_the_task_started(worker, tmp_path):
    file = tmp_path / "pid"

    def starts_others():
        child = subprocess.Popen(["sh", "-c", "sleep 60 & wait"], start_new_session=True)
        file.write_text(str(child.pid))
        time.sleep(60)

    with pytest.raises(TimeoutError):
        call(worker, starts_others, timeout=2)
    assert wait_until(lambda: not is_running(int(file.read_text())))


def test_time_limit_covers_arguments_that_nobody_reads(worker):
    pid = call(worker, os.getpid)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        call(worker, len, bytes(1 << 24), timeout=0.2)
    assert not is_running(pid)


@pytest.mark.parametrize(
    "end, text",
    [
        (lambda: os._exit(3), "exited with status 3"),
        (lambda: sys.exit(4), "exited with status 4"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "ended by signal 11"),
    ],
)
def test_process_that_ends_is_reported_and_replaced(worker, end, text):
    with pytest.raises(ChildProcessError, match=f"the worker process .*{text}"):
        call(worker, end)
    assert call(worker, lambda: 1) == 1


def test_process_killed_from_outside(worker):
    pid = call(worker, os.getpid)
    worker.send(time.sleep, [60])
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ChildProcessError, match="ended by signal 9"):
        worker.recv()
    pid = call(worker, os.getpid)
    os.kill(pid, signal.SIGKILL)  # between two calls: nobody needs to notice
    assert wait_until(lambda: not worker.is_alive())
    assert call(worker, os.getpid) != pid


def test_answer_before_a_crash_is_kept(worker):
    pid = call(worker, os.getpid)
    worker.send(lambda: "answer")
    time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.1)
    assert worker.recv() == "answer"


def test_process_whose_child_keeps_the_channel_open(worker):
    def forks_and_dies():
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        os._exit(5)

    with pytest.raises(ChildProcessError, match="exited with status 5"):
        call(worker, forks_and_dies, timeout=30)


def test_kill_and_join(worker):
    pid = call(worker, os.getpid)
    worker.kill()
    assert not is_running(pid) and not worker.is_alive()
    worker.kill()
    pid = call(worker, os.getpid)
    worker.join(timeout=0)
    worker.join()
    assert not is_running(pid) and not worker.is_alive()
    assert call(worker, os.getpid) != pid


def test_join_lets_a_task_finish(worker):
    worker.send(lambda: bytes(1 << 22))
    worker.join()
    assert worker.recv() == bytes(1 << 22)


def test_retired_process_runs_its_exit_handlers(tmp_path):
    def register(path):
        import atexit

        atexit.register(lambda: open(path, "w").close())

    worker = PopenWorker(maximum_uses=1)
    call(worker, register, str(tmp_path / "first"))
    call(worker, register, str(tmp_path / "second"))
    assert wait_until((tmp_path / "first").exists)
    del worker
    assert wait_until((tmp_path / "second").exists)


def test_maximum_uses_and_initializer():
    def initialize(value):
        sys.initialized = value

    worker = PopenWorker(initialize, ("a",), maximum_uses=2)
    seen = [call(worker, lambda: (os.getpid(), sys.initialized)) for _ in range(5)]
    pids = [pid for pid, value in seen if value == "a"]
    assert len(pids) == 5
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]


def test_initializer_that_fails():
    def initialize():
        raise ValueError("no licence")

    worker = PopenWorker(initialize)
    for _ in range(2):
        with pytest.raises(ValueError, match="no licence") as caught:
            call(worker, lambda: 1)
        assert "in the worker's initializer" in caught.value.__notes__[0]
    assert not worker.is_alive()


def test_initializer_has_its_own_time():
    worker = PopenWorker(time.sleep, (0.5,))
    assert call(worker, lambda: time.sleep(0.5) or 1, timeout=0.9) == 1
    with pytest.raises(TimeoutError):
        call(PopenWorker(time.sleep, (60,)), lambda: 1, timeout=0.2)


def test_streams(tmp_path):
    with open(tmp_path / "out", "w+") as out:
        out.write("before\n")
        worker = PopenWorker(stdout=out, stderr=subprocess.STDOUT)
        call(worker, lambda: (print("printed"), os.write(2, b"raw\n")) and None)
        out.seek(0)
        assert out.read() == "before\nprinted\nraw\n"


def test_streams_are_inherited_or_dropped(capfd):
    assert call(PopenWorker(), lambda: print("hello")) is None
    assert capfd.readouterr().out == "hello\n"
    call(PopenWorker(stdout=subprocess.DEVNULL), lambda: print("hello"))
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(maximum_uses=0), "maximum_uses: expected a positive integer or None, got 0"),
        (dict(stdout=subprocess.PIPE), "stdout: expected a file or a descriptor, got PIPE"),
        (dict(stderr=subprocess.PIPE), "stderr: expected a file or a descriptor, got PIPE"),
        (dict(stdout=subprocess.STDOUT), "stdout: expected a file or a descriptor, got STDOUT"),
        (dict(stderr="log"), "stderr: expected a file or a descriptor, got 'log'"),
        (dict(initializer=3), "initializer: expected a function, got int"),
    ],
)
def test_bad_arguments_of_a_worker(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        PopenWorker(**arguments)


def test_bad_time_limits(worker):
    for limit in (-1, "soon", float("nan")):
        with pytest.raises(ValueError, match="expected seconds or None"):
            worker.send(len, ["a"], timeout=limit)


def test_pool_runs_in_parallel_and_in_order():
    with PopenPoolExecutor(max_workers=2) as pool:
        futures = [pool.submit(lambda x: (x, os.getpid()), x) for x in range(50)]
        results = [future.result() for future in futures]
    assert [x for x, _ in results] == list(range(50))
    assert 1 <= len({pid for _, pid in results}) <= 2
    assert not any(is_running(pid) for _, pid in results)


def test_pool_starts_no_more_processes_than_needed():
    with PopenPoolExecutor(max_workers=8) as pool:
        assert len({pool.submit(os.getpid).result() for _ in range(8)}) <= 2


def test_pool_map_with_error_catching():
    def act(x):
        if x == 1:
            raise ValueError("one")
        if x == 2:
            time.sleep(60)
        if x == 3:
            os._exit(1)
        return -x

    pool = PopenPoolExecutor(max_workers=2, timeout=0.5)
    results = list(pool.map_with_error_catching(act, range(5)))
    kinds = [result.status for result in results]
    assert kinds == [1, 2, 3, 2, 1] and all(isinstance(k, StatusKind) for k in kinds)
    assert results[0] == MapResult(StatusKind.COMPLETE, 0) and results[4].value == -4
    assert [type(r.value) for r in results[1:4]] == [ValueError, TimeoutError, ChildProcessError]


def test_abandoned_map_cancels_the_rest(tmp_path):
    pool = PopenPoolExecutor(max_workers=1)
    results = pool.map_with_error_catching(lambda x: (tmp_path / str(x)).touch(), range(1000))
    next(results)
    results.close()
    pool.shutdown()
    assert len(list(tmp_path.iterdir())) < 1000


def test_pool_recycles_and_initializes():
    def initialize(value):
        sys.initialized = value

    with PopenPoolExecutor(1, None, initialize, (5,), maximum_process_uses=2) as pool:
        seen = [pool.submit(lambda: (os.getpid(), sys.initialized)).result() for _ in range(4)]
    assert len({pid for pid, _ in seen}) == 2 and {value for _, value in seen} == {5}


def test_pool_reports_what_cannot_be_pickled():
    lock = threading.Lock()
    with PopenPoolExecutor(1) as pool:
        with pytest.raises(TypeError, match="can be pickled"):
            pool.submit(lambda: lock).result()
        assert pool.submit(lambda: 1).result() == 1
    with pytest.raises(TypeError, match="initializer: expected a function and arguments"):
        PopenPoolExecutor(1, initializer=len, initargs=(lock,))


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_bad_size_of_a_pool(size):
    with pytest.raises(ValueError, match="max_workers: expected a positive integer or None"):
        PopenPoolExecutor(size)


def test_shutdown_waits_and_refuses_more():
    pool = PopenPoolExecutor(2)
    futures = [pool.submit(lambda x: time.sleep(0.05) or x, x) for x in range(4)]
    pool.shutdown()
    assert [f.result(timeout=0) for f in futures] == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="expected a pool in use, got one that was shut down"):
        pool.submit(len, "a")
    pool.shutdown()


def test_shutdown_can_kill():
    pool = PopenPoolExecutor(1)
    futures = [pool.submit(time.sleep, 60) for _ in range(3)]
    assert wait_until(futures[0].running)
    begin = time.monotonic()
    pool.shutdown(kill=True)
    assert time.monotonic() - begin < 10
    with pytest.raises(ChildProcessError):
        futures[0].result()
    assert futures[1].cancelled() and futures[2].cancelled()


def test_abandoned_pool_finishes_and_ends():
    pool = PopenPoolExecutor(2)
    futures = [pool.submit(lambda: time.sleep(0.1) or os.getpid()) for _ in range(4)]
    threads = pool._pool.threads
    del pool
    pids = [f.result() for f in futures]
    assert wait_until(lambda: not any(is_running(pid) for pid in pids))
    assert wait_until(lambda: not any(t.is_alive() for t in threads))


def test_shutdown_in_a_garbage_collection_does_not_wait():
    """A collection may run in a thread that holds what the pool's threads need."""
    held, done = threading.Lock(), threading.Event()
    pool = PopenPoolExecutor(1)
    pool.submit(len, "").result()
    future = pool.submit(time.sleep, 0.2)
    future.add_done_callback(lambda _: (held.acquire(), held.release(), done.set()))

    class Owner:
        def __init__(self):
            self.me = self

        def __del__(self):
            pool.shutdown(wait=True)

    with held:
        Owner()
        gc.collect()
    assert done.wait(10)


def test_pools_in_cycles_with_exceptions_are_collected():
    """An exception refers to the frame that refers to the pool; a new pool is made meanwhile."""

    def use():
        pool = PopenPoolExecutor(2)
        try:
            pool.submit(lambda: 1 / 0).result()
        except ZeroDivisionError as error:
            kept = error  # noqa: F841  the cycle
        return weakref.ref(pool)

    gc.disable()
    try:
        pools = [use() for _ in range(5)]
        gc.set_threshold(1, 1, 1)
        gc.enable()
        use()
    finally:
        gc.enable()
        gc.set_threshold(700, 10, 10)
    gc.collect()
    assert [pool() for pool in pools] == [None] * 5


def test_a_server_that_was_ended_is_replaced():
    worker = PopenWorker()
    pid = call(worker, os.getpid)
    server = call(worker, os.getppid)
    worker.send(time.sleep, [60])
    os.kill(server, signal.SIGKILL)
    with pytest.raises(ChildProcessError, match="lost its server"):
        worker.recv()
    assert wait_until(lambda: not is_running(pid))
    assert call(worker, os.getppid) != server


def test_a_server_that_was_ended_while_others_hold_the_channel(tmp_path):
    """The worker's end is inherited by what it forks, so it does not close with the worker."""

    def forks_and_waits():
        pid = os.fork()
        if pid:
            (tmp_path / "pid").write_text(str(pid))
        time.sleep(60)
        os._exit(0)

    worker = PopenWorker()
    server = call(worker, os.getppid)
    worker.send(forks_and_waits)
    written = tmp_path / "pid"
    assert wait_until(lambda: written.exists() and written.read_text())
    os.kill(server, signal.SIGKILL)
    with pytest.raises(ChildProcessError, match="lost its server"):
        worker.recv()
    os.kill(int(written.read_text()), signal.SIGKILL)


def test_a_fork_of_this_process_leaves_the_workers_alone():
    worker, busy, pool = PopenWorker(), PopenWorker(), PopenPoolExecutor(1)
    pid = call(worker, os.getpid)
    pool.submit(len, "").result()
    busy.send(lambda: "the parent's")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with pytest.raises(RuntimeError, match="submit: expected a pool of this process"):
                pool.submit(len, "")
            with pytest.raises(RuntimeError, match="recv: expected a send before it"):
                busy.recv()
            assert call(busy, os.getpid) != pid and call(worker, os.getpid) != pid
            worker.kill()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert call(worker, os.getpid) == pid and busy.recv() == "the parent's"
    assert pool.submit(len, "abc").result() == 3


def test_programs_that_a_task_starts_inherit_no_descriptor(worker):
    def descriptors():
        command = [sys.executable, "-c", "import os; print(len(os.listdir('/proc/self/fd')))"]
        return int(subprocess.check_output(command, close_fds=False))

    assert call(worker, descriptors) == 4  # the standard ones, and the folder that is listed


def test_kill_child_processes():
    script = "sleep 60 & (sleep 60 & wait) & echo ready; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as shell:
        shell.stdout.readline()
        time.sleep(0.1)
        below = _fork_server._children(shell.pid)
        assert len(below) == 2
        popen_pool.kill_child_processes(shell.pid)
        assert shell.wait(10) is not None
    assert wait_until(lambda: not any(map(is_running, below)))
    popen_pool.kill_child_processes(shell.pid)  # of a process that is gone


def test_result_types_cross_processes():
    result = MapResult(StatusKind.TIMEOUT, 3)
    assert pickle.loads(pickle.dumps(result)) == result == (3, 3)
