# SPDX-License-Identifier: Apache-2.0
"""The process that starts, ends and reaps the workers of `popen_pool`, and what a worker runs.

Run as a script, it imports nothing of this package: a worker is a fork of a small interpreter, and
loads the compiler only when a task asks for it. The server runs no task itself, so it always
notices that its parent has ended, and then takes every process below it along.
"""

import contextlib
import ctypes
import functools
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback

REQUEST = struct.Struct("<cQ")  # what to do, with which worker
START, RETIRE, KILL = b"s", b"r", b"k"
STATUS = struct.Struct("<i")  # on the life line: the worker's pid, in the end its wait status
LENGTH = struct.Struct("<Q")  # before each message between parent and worker
RESULT, ERROR = b"\0", b"\1"  # how an answer begins
GRACE = 5.0  # seconds that a retired worker may take for its exit handlers

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def _prctl(option, value):
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _children(pid):
    """The living children of a process."""
    try:
        found = []
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
        return [child for child in found if not _is_zombie(child)]
    except OSError:
        if os.path.isdir("/proc/self/task") and not os.path.isdir(f"/proc/{pid}"):
            return []
    # A kernel that does not list children.
    with contextlib.suppress(OSError):
        command = ["ps", "-A", "-o", "pid=,ppid=,stat="]
        listing = subprocess.run(command, capture_output=True, text=True).stdout
        rows = (line.split() for line in listing.splitlines())
        return [int(child) for child, above, state in rows if int(above) == pid and state[0] != "Z"]
    return []


def _is_zombie(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _send_signal(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_child_processes(pid):
    """Kills all processes below `pid`, not `pid` itself.

    Each is stopped before its own children are looked for, so that none escapes by forking.
    """
    below = [pid]
    for parent in below:
        for child in _children(parent):
            if child not in below:
                _send_signal(child, signal.SIGSTOP)
                below.append(child)
    for child in below[1:]:
        _send_signal(child, signal.SIGKILL)


class _Server:
    def __init__(self, control, parent):
        self.control, self.parent = control, parent
        self.pids, self.life, self.channels, self.deadlines = {}, {}, {}, {}  # all by worker
        self.wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write)
        self.private = [self.wake, wake_write]
        self.poll = select.poll()
        # A fork of the parent may hold the control socket open, hence also its pidfd.
        watched = [control.fileno(), self.wake]
        if hasattr(os, "pidfd_open"):
            try:
                self.private.append(os.pidfd_open(parent))
                watched.append(self.private[-1])
            except ProcessLookupError:
                sys.exit(1)
            except OSError:
                pass  # not in this sandbox
        for fd in watched:
            self.poll.register(fd, select.POLLIN)

    def serve(self):
        """Returns a worker's socket in each forked worker; in the server, None at the end."""
        while True:
            left = min(self.deadlines.values(), default=None)
            timeout = None if left is None else max(0, left - time.monotonic()) * 1000 + 1
            ready = dict(self.poll.poll(timeout))
            if self.wake in ready:
                os.read(self.wake, 4096)
            self._reap()
            if self.control.fileno() in ready:
                message, fds, _, _ = socket.recv_fds(self.control, REQUEST.size, 4)
                if not message:
                    return self._end()
                kind, worker = REQUEST.unpack(message)
                if kind == START:
                    if (channel := self._start(worker, fds)) is not None:
                        return channel
                elif worker in self.pids:
                    if kind == KILL:
                        self._kill(worker)
                    else:
                        self.deadlines[worker] = time.monotonic() + GRACE
            elif os.getppid() != self.parent:
                self.deadlines.clear()
                return self._end()
            for worker in [w for w, at in self.deadlines.items() if at <= time.monotonic()]:
                self._kill(worker)

    def _start(self, worker, fds):
        server = os.getpid()
        try:
            pid = os.fork() if len(fds) == 4 else -1  # fewer: this process may not open more files
        except OSError as error:
            print(f"popen_pool: cannot start a worker: {error}", file=sys.stderr)
            pid = -1
        if pid == 0:
            return self._become_worker(server, *fds)
        if pid > 0:
            self.pids[worker] = pid
            self.channels[worker], self.life[worker] = fds[:2]
            del fds[:2]
            self._tell(worker, pid)
        for fd in fds:  # closed without a pid on the life line, it says that there is no worker
            os.close(fd)
        return None

    def _become_worker(self, server, channel, life, out, err):
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(out, 1)
        os.dup2(err, 2)
        others = (*self.life.values(), *self.channels.values())
        for fd in (*self.private, *others, life, out, err):
            os.close(fd)
        self.control.close()
        os.set_inheritable(channel, False)  # by programs that a task starts
        return socket.socket(fileno=channel)

    def _tell(self, worker, value):
        with contextlib.suppress(BrokenPipeError):  # nobody listens any more
            os.write(self.life[worker], STATUS.pack(value))

    def _kill(self, worker):
        self.deadlines.pop(worker, None)
        pid = self.pids[worker]
        _send_signal(pid, signal.SIGSTOP)
        kill_child_processes(pid)
        _send_signal(pid, signal.SIGKILL)

    def _reap(self):
        workers = {pid: worker for worker, pid in self.pids.items()}
        while True:
            try:
                # Left as a zombie first: its process group cannot be anybody else's as long.
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            worker = workers.get(ended.si_pid)
            if worker is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(ended.si_pid, signal.SIGKILL)
            status = os.waitpid(ended.si_pid, 0)[1]
            if worker is not None:
                self._tell(worker, status)
                os.close(self.life.pop(worker))
                # Processes that it has started may hold its end open.
                with socket.socket(fileno=self.channels.pop(worker)) as channel:
                    with contextlib.suppress(OSError):
                        channel.shutdown(socket.SHUT_RDWR)
                del self.pids[worker]
                self.deadlines.pop(worker, None)

    def _end(self):
        """Nobody is left to work for."""
        for worker in self.pids.keys() - self.deadlines.keys():
            self._kill(worker)
        limit = min(time.monotonic() + 1, max(self.deadlines.values(), default=0))
        while self.pids and time.monotonic() < limit:
            time.sleep(0.005)
            self._reap()
        while True:
            kill_child_processes(os.getpid())
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return None


class Inbox:
    """Messages out of the pieces in which a stream delivers them."""

    def __init__(self):
        self.data, self.wanted = bytearray(), None

    def read(self, channel):
        """Takes what a socket has; False at the end of the stream."""
        missing = 0 if self.wanted is None else self.wanted - len(self.data)
        piece = channel.recv(min(max(missing, 1 << 16), 1 << 24))
        self.data += piece
        return bool(piece)

    def pop(self):
        """The next message, or None as long as it is not complete."""
        if self.wanted is None and len(self.data) >= LENGTH.size:
            self.wanted = LENGTH.unpack_from(self.data)[0] + LENGTH.size
        if self.wanted is None or len(self.data) < self.wanted:
            return None
        message = bytes(memoryview(self.data)[LENGTH.size : self.wanted])
        del self.data[: self.wanted]
        self.wanted = None
        return message


def _next_message(inbox, channel):
    """The next message on a blocking socket; None at its end."""
    while (message := inbox.pop()) is None:
        if not inbox.read(channel):
            return None
    return message


def _answer(call, what):
    """Runs `call`; its result or error, pickled."""
    import cloudpickle

    try:
        value = call()
    except Exception as error:
        error.add_note(f"in {what}:\n{_remote_traceback(error)}")
        text = "".join(traceback.format_exception_only(error))
        try:
            body = cloudpickle.dumps(error)
        except Exception:
            body = b""
        return ERROR + pickle.dumps((text, body))
    try:
        return RESULT + cloudpickle.dumps(value)
    except Exception as error:
        text = f"expected a result that can be pickled, got {type(value).__name__}: {error}"
        return ERROR + pickle.dumps((text, pickle.dumps(TypeError(text))))


def _remote_traceback(error):
    """Without our own frames; as text, because frames do not cross processes."""
    frames = traceback.extract_tb(error.__traceback__)
    while frames and frames[0].filename == __file__:
        del frames[0]
    return "".join(frames.format()).rstrip() or "  (no Python frame)"


def _call(message):
    function, args, kwargs = pickle.loads(message)
    return function(*args, **kwargs)


def _work(channel):
    inbox = Inbox()
    setup = _next_message(inbox, channel)
    if setup is None:
        return
    environment, path, folder, initializer = pickle.loads(setup)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = path
    sys.argv = [""]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)

    def start():
        os.chdir(folder)
        if initializer is not None:
            _call(initializer)

    what, message = "the worker's initializer", None
    while True:
        answer = _answer(start if message is None else functools.partial(_call, message), what)
        with contextlib.suppress(Exception):  # a task may have closed or replaced it
            sys.stdout.flush()
        try:
            channel.sendall(LENGTH.pack(len(answer)) + answer)
        except BrokenPipeError:
            return
        if message is None and answer[:1] == ERROR:  # of the initializer: no task may run
            return
        what, message = "the worker process", _next_message(inbox, channel)
        if message is None:
            return


def _main():
    control, parent, path = sys.argv[1:]
    sys.path.insert(0, path)
    import cloudpickle  # noqa: F401  before any fork: workers have it at once

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what workers leave behind ends with the server
    server = _Server(socket.socket(fileno=int(control)), int(parent))
    channel = server.serve()
    if channel is not None:
        del server
        _work(channel)


if __name__ == "__main__":
    _main()
