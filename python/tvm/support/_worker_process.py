# SPDX-License-Identifier: Apache-2.0
"""One process below the fork server, and the parent's connection to that server.

Ending a process takes no lock, so it may happen during garbage collection.
"""

import atexit
import contextlib
import itertools
import math
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

from . import _fork_server as protocol

_numbers = itertools.count()
_LOOK_AGAIN = 1.0  # seconds


class _Connection:
    """To the fork server of this process; made when the first worker is."""

    def __init__(self):
        self.lock, self.socket, self.process = threading.RLock(), None, None

    def start(self, number, fds):
        """Asks for a worker; a server that somebody ended is replaced."""
        with self.lock:
            for attempt in (1, 2):
                if self.socket is None:
                    self._launch()
                try:
                    socket.send_fds(
                        self.socket, [protocol.REQUEST.pack(protocol.START, number)], fds
                    )
                    return
                except (BrokenPipeError, ConnectionError):
                    self._drop()
                    if attempt == 2:
                        raise

    def tell(self, kind, number):
        """One message is one packet: needs no lock. Without a server there are no workers."""
        with contextlib.suppress(OSError, AttributeError):
            self.socket.send(protocol.REQUEST.pack(kind, number))

    def _launch(self):
        import cloudpickle

        if not sys.executable:
            raise RuntimeError("popen_pool: expected sys.executable to name Python, got nothing")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        modules = os.path.dirname(os.path.dirname(cloudpickle.__file__))
        with theirs, stream(None, 2) as err:
            self.process = subprocess.Popen(
                # -P: the script's folder must not become a place to import from.
                [sys.executable, "-P", protocol.__file__]
                + [str(theirs.fileno()), str(os.getpid()), modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=err,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C reaches us alone; we decide what ends
            )
        self.socket = ours

    def _drop(self):
        self.socket.close()
        self.socket = None
        self.process.kill()
        self.process.wait()

    def end(self):
        """The server ends the workers that are left, then itself."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()

    def forget(self):
        """In a fork of this process: the server and its workers are the parent's."""
        if self.socket is not None:
            self.socket.close()
            self.process.returncode = 0  # not our child: nothing to wait for
        self.__init__()


_connection = _Connection()
atexit.register(_connection.end)
os.register_at_fork(after_in_child=_connection.forget)


def check_stream(name, wanted):
    """Raises where a stream argument cannot be given to a process that runs by itself."""
    special = {subprocess.PIPE: "PIPE"}
    if name != "stderr":
        special[subprocess.STDOUT] = "STDOUT"
    named = isinstance(wanted, int) and special.get(wanted)
    if named or not (wanted is None or isinstance(wanted, int) or hasattr(wanted, "fileno")):
        got = named or repr(wanted)
        raise ValueError(f"{name}: expected a file or a descriptor, got {got}")


@contextlib.contextmanager
def stream(wanted, default):
    """A descriptor for a stream argument of Popen: None, a descriptor, DEVNULL, or a file."""
    if wanted is not None and wanted != subprocess.DEVNULL:
        if hasattr(wanted, "flush"):
            wanted.flush()  # what was written before comes before
        yield wanted if isinstance(wanted, int) else wanted.fileno()
        return
    fd = None
    if wanted is None:
        with contextlib.suppress(OSError):
            fd = os.dup(default)
    if fd is None:
        fd = os.open(os.devnull, os.O_WRONLY)
    try:
        yield fd
    finally:
        os.close(fd)


class Ended(Exception):
    """The process is gone; `status` is its wait status, or None where nobody knows it."""

    def __init__(self, status):
        super().__init__(status)
        self.status = status

    def __str__(self):
        if self.status is None:
            return "could not be started, or lost its server"
        code = os.waitstatus_to_exitcode(self.status)
        return f"was ended by signal {-code}" if code < 0 else f"exited with status {code}"


class Process:
    """A worker process: messages go in, answers come out."""

    def __init__(self, stdout, stderr):
        self.number, self.owner = next(_numbers), os.getpid()
        self.pid = self.status = None
        # The process was asked to end; is gone; has closed its channel.
        self.finished = self.ended = self.silent = False
        self._inbox, self._lifeline, self._limits = protocol.Inbox(), b"", {}
        self.channel, theirs = socket.socketpair()
        self.life, life = os.pipe()
        os.set_blocking(self.life, False)
        try:
            with theirs, contextlib.ExitStack() as open_streams:
                out = open_streams.enter_context(stream(stdout, 1))
                together = stderr == subprocess.STDOUT
                err = out if together else open_streams.enter_context(stream(stderr, 2))
                _connection.start(self.number, [theirs.fileno(), life, out, err])
        except BaseException:
            self.close()
            raise
        finally:
            os.close(life)

    def send(self, message, deadline=None):
        """Raises TimeoutError; that the process has ended is for `receive` to tell."""
        data = memoryview(protocol.LENGTH.pack(len(message)) + message)
        while data and not self.ended:
            try:
                self._limit(socket.SO_SNDTIMEO, deadline)
                data = data[self.channel.send(data) :]
            except BlockingIOError:
                self.look()
            except ConnectionError:
                return

    def receive(self, deadline=None):
        """The next answer; raises Ended or TimeoutError."""
        while (answer := self._inbox.pop()) is None:
            if self.silent:
                self.finish()  # it is about to end by itself; its own status is worth waiting for
                self.join()
                raise Ended(self.status)
            self._read(deadline)
        return answer

    def _read(self, deadline):
        """Takes what is there, waits for it; raises TimeoutError."""
        self._limit(socket.SO_RCVTIMEO, deadline)
        try:
            self.silent = not self._inbox.read(self.channel)
        except BlockingIOError:
            self.look()
            self.silent = self.ended  # nothing came, and nobody is left
        except ConnectionError:
            self.silent = True

    def _limit(self, option, deadline):
        """Sets the time after which the channel's next call raises BlockingIOError.

        The end of a process wakes us up, except when its server was killed and processes that it
        has started hold its channel open: hence we look from time to time.
        """
        left = _LOOK_AGAIN
        if deadline is not None:
            left = min(left, deadline - time.monotonic())
            if left <= 0:
                raise TimeoutError
        if self._limits.get(option) != left:
            self._limits[option] = left
            seconds = math.floor(left)
            microseconds = math.ceil((left - seconds) * 1e6)  # 0 would be no limit
            time_value = struct.pack("ll", seconds, microseconds)
            self.channel.setsockopt(socket.SOL_SOCKET, option, time_value)

    def look(self):
        """What the life line says by now."""
        size = protocol.STATUS.size
        try:
            data = os.read(self.life, 2 * size)
        except BlockingIOError:
            return
        self._lifeline += data
        values = [value for (value,) in protocol.STATUS.iter_unpack(self._lifeline)]
        self.pid, self.status = [*values, None, None][:2]
        self.ended = self.status is not None or not data

    def join(self, deadline=None):
        """True once the process is gone; what it still sends is kept for `receive`."""
        try:
            # A process that is still writing its answer needs a reader to be able to end.
            while not self.silent:
                self._read(deadline)
            while not self.ended:
                self._wait_for_life(deadline)
        except TimeoutError:
            return False
        return True

    def _wait_for_life(self, deadline):
        left = None if deadline is None else (deadline - time.monotonic()) * 1000
        if left is not None and left <= 0:
            raise TimeoutError
        poll = select.poll()
        poll.register(self.life, select.POLLIN)
        poll.poll(None if left is None else left + 1)
        self.look()

    def kill(self):
        """The process and all below it, from any thread; `receive` then raises Ended."""
        if self.owner == os.getpid():
            _connection.tell(protocol.KILL, self.number)

    def finish(self):
        """No more tasks: the process ends by itself, or is ended after its grace."""
        self.finished = True
        if self.owner == os.getpid():
            with contextlib.suppress(OSError):
                self.channel.shutdown(socket.SHUT_WR)
            _connection.tell(protocol.RETIRE, self.number)

    def close(self):
        """Gives the descriptors back."""
        self.channel.close()
        if self.life is not None:
            os.close(self.life)
            self.life = None
