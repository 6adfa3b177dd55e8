# SPDX-License-Identifier: Apache-2.0
"""Where the time of tuning goes."""

import contextlib
import time

from .utils import Interface


class Profiler(Interface):
    """Seconds by name, of what runs inside `with Profiler.timeit(name)` while it is the current
    one (`with Profiler() as p`)."""

    _stack = []

    def __init__(self):
        self._seconds, self._begin, self._total = {}, None, 0.0

    def get(self):
        """{name: seconds}, with "Total"."""
        running = 0.0 if self._begin is None else time.perf_counter() - self._begin
        return {**self._seconds, "Total": self._total + running}

    def table(self):
        """The same as a table, the largest first."""
        total = max(self.get()["Total"], 1e-12)
        rows = sorted(self.get().items(), key=lambda item: -item[1])
        lines = [f"{name:<24} {secs:>10.3f} s {100 * secs / total:>6.1f} %" for name, secs in rows]
        return "\n".join(lines)

    def __enter__(self):
        self._begin = time.perf_counter()
        Profiler._stack.append(self)
        return self

    def __exit__(self, *_):
        Profiler._stack.remove(self)
        self._total += time.perf_counter() - self._begin
        self._begin = None

    @staticmethod
    def current():
        """The innermost one, or None."""
        return Profiler._stack[-1] if Profiler._stack else None

    @staticmethod
    @contextlib.contextmanager
    def timeit(name):
        """Adds the time of its body to the current profiler."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            profiler = Profiler.current()
            if profiler is not None:
                seconds = profiler._seconds.get(name, 0.0) + time.perf_counter() - begin
                profiler._seconds[name] = seconds
