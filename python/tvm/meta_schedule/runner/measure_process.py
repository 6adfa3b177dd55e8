# SPDX-License-Identifier: Apache-2.0
"""The process that measures: libtvm_runtime's server (src/runtime/measure) behind two pipes."""

import json
import os
import select
import subprocess
import sys
import tempfile
import time

from tvm_ffi.libinfo import find_libtvm_ffi

from tvm import _libs

# Only the runtime is loaded: starting takes milliseconds, and nothing of the tuner is in there that
# a candidate could damage.
_CODE = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)  # wherever it lies: the runtime needs it
sys.exit(ctypes.CDLL(sys.argv[2]).TVMMeasureServe())
"""


class MeasureProcess:
    """Starts with the first request, and again after it was lost."""

    GRACE = 5.0  # seconds beyond the limit of a request, for the server to notice it

    def __init__(self):
        self._process = None
        self._pending = b""

    def _start(self):
        libraries = [find_libtvm_ffi(), str(_libs.find("tvm_runtime"))]
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", _CODE, *libraries],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._pending = b""

    @property
    def alive(self):
        """Whether it has started and not ended since."""
        return self._process is not None and self._process.poll() is None

    def request(self, message, timeout):
        """The reply to a request, as a dictionary with "secs" or "error"."""
        if not self.alive:
            self._start()
        line = json.dumps({**message, "timeout": timeout}).encode() + b"\n"
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
            return json.loads(self._read_line(time.monotonic() + timeout + self.GRACE))
        except (BrokenPipeError, EOFError, TimeoutError) as error:
            last = self._last_words()
            self.close()
            return {"error": f"the measuring process was lost: {type(error).__name__}{last}"}

    def _last_words(self):
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f" ({lines[-1][:300]})" if lines else ""

    def _read_line(self, deadline):
        fd = self._process.stdout.fileno()
        while b"\n" not in self._pending:
            ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            data = os.read(fd, 65536)
            if not data:
                raise EOFError
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def close(self):
        """Ends the process."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        self._errors.close()
        self._process = None

    def __del__(self):
        self.close()
