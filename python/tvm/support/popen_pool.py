# SPDX-License-Identifier: Apache-2.0
"""Functions run in other processes, with time limits: `PopenWorker`, `PopenPoolExecutor`.

Processes are forks of a small server, so one is ready in milliseconds; none outlives this process,
whatever way it ends.
"""

import atexit
import collections
import concurrent.futures
import copy
import enum
import gc
import os
import pickle
import queue
import sys
import threading
import time
import weakref

from ._fork_server import ERROR, GRACE, kill_child_processes  # noqa: F401  (public name)
from ._worker_process import Ended, Process, check_stream


class StatusKind(enum.IntEnum):
    """How a task stands or ended."""

    RUNNING = 0
    COMPLETE = 1
    EXCEPTION = 2
    TIMEOUT = 3


class MapResult(collections.namedtuple("MapResult", ["status", "value"])):
    """One result of `map_with_error_catching`; `value` is the exception unless it is COMPLETE."""

    __slots__ = ()


def _pickled(what, fn, args, kwargs):
    import cloudpickle

    if not callable(fn):
        raise TypeError(f"{what}: expected a function, got {type(fn).__name__}")
    try:
        return cloudpickle.dumps((fn, tuple(args), dict(kwargs or {})))
    except Exception as error:
        name = getattr(fn, "__qualname__", type(fn).__name__)
        raise TypeError(
            f"{what}: expected a function and arguments that can be pickled, got {name}: {error}"
        ) from error


def _unpickled(answer):
    """The value of an answer, or raises its error."""
    if answer[:1] != ERROR:
        return pickle.loads(memoryview(answer)[1:])
    text, body = pickle.loads(memoryview(answer)[1:])
    try:
        error = pickle.loads(body)
    except Exception:  # an exception class that cannot cross: its text does
        error = RuntimeError(text)
    raise error


def _check_limit(what, value):
    if value is not None and not (isinstance(value, int | float) and value >= 0):
        raise ValueError(f"{what}: expected seconds or None, got {value!r}")
    return value


def _check_count(what, value):
    if value is not None and (not isinstance(value, int) or value < 1):
        raise ValueError(f"{what}: expected a positive integer or None, got {value!r}")
    return value


class PopenWorker:
    """A process that runs one function after the other; started by the first `send`.

    It is replaced after `maximum_uses` calls, after a time limit has passed and when it ended by
    itself. `initializer(*initargs)` runs first in every new one; its error becomes that of the
    call. `stdout` and `stderr` are as for `subprocess.Popen`. For one thread at a time.
    """

    def __init__(self, initializer=None, initargs=(), maximum_uses=None, stdout=None, stderr=None):
        self._process, self._uses, self._pending = None, 0, False
        self._maximum_uses = _check_count("maximum_uses", maximum_uses)
        check_stream("stdout", stdout)
        check_stream("stderr", stderr)
        self._streams = stdout, stderr
        self._initializer = None
        if initializer is not None:
            self._initializer = _pickled("initializer", initializer, initargs, {})

    def __del__(self):
        process = getattr(self, "_process", None)
        if process is not None:
            process.kill() if self._pending else process.finish()
            process.close()

    def _forget_process_of_parent(self):
        """In a fork of the process that started it, its socket must not be used."""
        if self._process is not None and self._process.owner != os.getpid():
            self._process.close()
            self._process, self._pending = None, False

    def kill(self):
        """Ends the process and all that it started; the next `send` starts another."""
        self._forget_process_of_parent()
        process, self._process, self._pending = self._process, None, False
        if process is not None:
            process.kill()
            process.join(time.monotonic() + GRACE)
            process.close()

    def join(self, timeout=None):
        """Lets the process finish what it does and end; waits at most `timeout` seconds."""
        _check_limit("join", timeout)
        self._forget_process_of_parent()
        if self._process is not None:
            self._process.finish()
            self._process.join(None if timeout is None else time.monotonic() + timeout)

    def is_alive(self):
        """Whether there is a process."""
        self._forget_process_of_parent()
        if self._process is not None:
            self._process.look()
        return self._process is not None and not self._process.ended

    def send(self, fn, args=(), kwargs=None, timeout=None):
        """Starts `fn(*args, **kwargs)` in the process; call `recv` before the next `send`.

        `timeout` is in seconds, from the moment when the process is ready; its initializer may
        take as long before.
        """
        self._forget_process_of_parent()
        if self._pending:
            raise RuntimeError("send: expected a recv after the last send")
        self._timeout = _check_limit("send", timeout)
        message = _pickled("send", fn, args, kwargs)
        worn = self._uses == self._maximum_uses or (self._process and self._process.finished)
        if worn or not self.is_alive():
            self._replace()
        self._start_clock()
        try:
            if self._fresh:
                self._process.send(self._setup(), self._deadline)
            self._process.send(message, self._deadline)
        except TimeoutError:
            pass  # has passed for recv, too
        self._pending = True
        self._uses += 1

    def recv(self):
        """The result of the last `send`.

        Raises what the function raised; TimeoutError when its time was up; ChildProcessError when
        the process ended.
        """
        self._forget_process_of_parent()
        if not self._pending:
            raise RuntimeError("recv: expected a send before it")
        answer = self._receive()
        if self._fresh and answer[:1] != ERROR:  # the initializer is done
            self._fresh = False
            self._start_clock()
            answer = self._receive()
        self._pending = False
        if self._fresh:
            self.kill()
        return _unpickled(answer)

    def _replace(self):
        if self._process is not None:
            self._process.finish()
            self._process.close()
            self._process = None
        self._process, self._uses, self._fresh = Process(*self._streams), 0, True

    def _setup(self):
        return pickle.dumps((dict(os.environ), sys.path, os.getcwd(), self._initializer))

    def _start_clock(self):
        limited = self._timeout is not None
        self._deadline = time.monotonic() + self._timeout if limited else None

    def _receive(self):
        try:
            return self._process.receive(self._deadline)
        except TimeoutError:
            self.kill()
            raise TimeoutError(f"the task took longer than {self._timeout} s") from None
        except Ended as ended:
            self.kill()
            raise ChildProcessError(f"the worker process {ended}") from None
        except BaseException:  # Ctrl-C: the answer that is still to come must not be the next one
            self.kill()
            raise


class _Pool:
    """What an executor shares with its threads.

    They hold no reference to the executor, so an abandoned one is collected and its threads end.
    There is no lock: a SimpleQueue may be used by garbage collection in the midst of its own call.
    """

    def __init__(self, size, timeout, worker):
        self.timeout, self.worker, self.owner = timeout, worker, os.getpid()
        self.tasks, self.idle, self.places = (queue.SimpleQueue() for _ in range(3))
        self.threads, self.workers = [], []
        self.stopped = self.killed = False
        for _ in range(size):
            self.places.put(None)

    def ensure_thread(self):
        """One that is idle, or another one while there are places."""
        for tokens in (self.idle, self.places):
            try:
                tokens.get_nowait()
            except queue.Empty:
                continue
            if tokens is self.places:
                thread = threading.Thread(target=self.serve, name="popen-pool", daemon=True)
                self.threads.append(thread)
                thread.start()
            return

    def serve(self):
        """What each thread does with its worker."""
        worker = copy.copy(self.worker)
        self.workers.append(worker)
        while True:
            try:
                task = self.tasks.get_nowait()
            except queue.Empty:
                if self.stopped:
                    break
                self.idle.put(None)
                task = self.tasks.get()
            if task is not None:  # None only wakes us up
                self.run(worker, *task)
                del task  # a result must not live on here
        self.tasks.put(None)  # for the next thread
        worker.join()
        worker.kill()

    def run(self, worker, future, fn, args, kwargs):
        if self.killed:
            future.cancel()
        if not future.set_running_or_notify_cancel():
            return
        try:
            worker.send(fn, args, kwargs, self.timeout)
            if self.killed:
                worker.kill()
                raise ChildProcessError("the worker process was ended by shutdown")
            result = worker.recv()
        except BaseException as error:
            future.set_exception(error)
            del future  # the traceback refers to this frame: no cycle
        else:
            future.set_result(result)

    def stop(self, kill):
        """No task comes after those that are there; none of these either, with `kill`."""
        self.killed, self.stopped = self.killed or kill, True
        if kill:
            self.interrupt()
        self.tasks.put(None)

    def interrupt(self):
        for worker in list(self.workers):
            process = worker._process
            if process is not None:
                process.kill()

    def join(self):
        for thread in list(self.threads):
            if thread is not threading.current_thread():
                thread.join()


_pools = weakref.WeakSet()
_collecting = threading.local()


@gc.callbacks.append
def _note_collection(phase, info):
    _collecting.now = phase == "start"


@atexit.register
def _end_pools():
    interrupted = isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)
    pools = list(_pools)
    for pool in pools:
        pool.stop(kill=interrupted)
    for pool in pools:
        pool.join()


class PopenPoolExecutor:
    """Runs functions in up to `max_workers` processes (default: one for each CPU).

    `timeout` limits each call, in seconds. The other parameters are those of `PopenWorker`.
    """

    def __init__(
        self,
        max_workers=None,
        timeout=None,
        initializer=None,
        initargs=(),
        maximum_process_uses=None,
        stdout=None,
        stderr=None,
    ):
        worker = PopenWorker(initializer, initargs, maximum_process_uses, stdout, stderr)
        size = _check_count("max_workers", max_workers) or os.cpu_count() or 1
        self._pool = _Pool(size, _check_limit("timeout", timeout), worker)
        _pools.add(self._pool)

    def __del__(self):
        if hasattr(self, "_pool"):
            self._pool.stop(kill=False)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.shutdown(kill=kind is not None and not issubclass(kind, Exception))

    def shutdown(self, wait=True, *, kill=False):
        """No call may be submitted any more; waits for those that were, unless `wait` is False.

        With `kill` it ends them instead: those waiting are cancelled, those running get a
        ChildProcessError. Within a garbage collection it does not wait: the thread that waits may
        hold what the others need.
        """
        self._pool.stop(kill)
        if wait and not getattr(_collecting, "now", False):
            try:
                self._pool.join()
            except BaseException:  # Ctrl-C: do not wait for what nobody wants any more
                self._pool.stop(kill=True)
                raise

    def submit(self, fn, *args, **kwargs):
        """Starts `fn(*args, **kwargs)`; returns a `concurrent.futures.Future`.

        Its `result()` raises as `PopenWorker.recv` does, and TypeError where the function, an
        argument or the result cannot be pickled.
        """
        if self._pool.owner != os.getpid():
            raise RuntimeError("submit: expected a pool of this process, got one of its parent")
        future = concurrent.futures.Future()
        if not self._pool.stopped:
            self._pool.tasks.put((future, fn, args, kwargs))
            self._pool.ensure_thread()
        # Stopped since: somebody runs it, or it is too late.
        if self._pool.stopped and (not future.running() and not future.done()) and future.cancel():
            raise RuntimeError("submit: expected a pool in use, got one that was shut down")
        return future

    def map_with_error_catching(self, fn, iterator):
        """`fn(x)` for each x, all started now: an iterator of MapResult, in the same order."""
        futures = collections.deque(self.submit(fn, value) for value in iterator)
        return self._results(self._pool, futures)

    @staticmethod
    def _results(pool, futures):
        try:
            while futures:
                yield _map_result(futures.popleft())
        except KeyboardInterrupt:
            pool.interrupt()
            raise
        finally:  # also when nobody asks for the rest
            for future in futures:
                future.cancel()


def _map_result(future):
    try:
        return MapResult(StatusKind.COMPLETE, future.result())
    except TimeoutError as error:
        return MapResult(StatusKind.TIMEOUT, error)
    except Exception as error:
        return MapResult(StatusKind.EXCEPTION, error)
