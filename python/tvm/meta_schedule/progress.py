# SPDX-License-Identifier: Apache-2.0
"""What users see: a live table in a terminal, plain lines elsewhere."""

import importlib.util
import sys
import time

HEAD = ("task", "best", "GFLOP/s", "vs default", "trials", "failed", "ETA")


def duration(secs):
    """1.234 ms, with a unit that fits."""
    if secs is None:
        return "-"
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if secs < limit:
            return f"{secs * scale:.2f} {unit}"
    return f"{secs:.2f} s"


def row(task, eta=None):
    """The texts of one task, in the order of HEAD."""
    best, default = task.best_secs, task.default_secs
    return (
        str(task.ctx.task_name),
        duration(best),
        "-" if best is None else f"{task.flop / best / 1e9:.2f}",
        "-" if best is None or default is None else f"{default / best:.2f}x",
        str(task.trials),
        str(sum(task.errors.values())),
        "-" if eta is None else f"{eta:.0f} s",
    )


def table_text(tasks, eta=None):
    """The table as plain text."""
    rows = [HEAD, *(row(t, None if t.is_terminated else eta) for t in tasks)]
    widths = [max(len(r[i]) for r in rows) for i in range(len(HEAD))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows]
    return "\n".join(line.rstrip() for line in lines)


class Progress:
    """Follows a run; `with Progress(total):`."""

    def __init__(self, total, stream=None):
        self.stream, self._live = stream or sys.stderr, None
        self.begin(total)

    def begin(self, total, deadline=None):
        """From now on `total` trials, until the time `deadline` at the latest."""
        self.total, self._begin, self._deadline = total, time.monotonic(), deadline

    def __enter__(self):
        if self.stream.isatty() and importlib.util.find_spec("rich") is not None:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=self.stream), auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_):
        if self._live is not None:
            self._live.stop()

    def _eta(self, scheduler):
        left, now = getattr(scheduler, "_trials_left", 0), time.monotonic()
        done = self.total - left
        if done <= 0:
            return None
        eta = (now - self._begin) / done * left
        return eta if self._deadline is None else max(0.0, min(eta, self._deadline - now))

    def update(self, scheduler, task=None):
        """Shows the state of a task scheduler after a round of a task, or at the end."""
        eta = None if task is None else self._eta(scheduler)
        if self._live is not None:
            self._live.update(self._table(scheduler.tasks_, eta), refresh=True)
        elif task is None:
            print(table_text(scheduler.tasks_), file=self.stream, flush=True)
        else:
            texts = zip(HEAD[1:], row(task, eta)[1:], strict=True)
            print(
                f"{task.ctx.task_name}: " + ", ".join(f"{h} {t}" for h, t in texts),
                file=self.stream,
                flush=True,
            )

    def say(self, text):
        """A line that stays."""
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=self.stream, flush=True)

    @staticmethod
    def _table(tasks, eta):
        from rich.table import Table

        table = Table(title=f"{sum(t.trials for t in tasks)} trials")
        for name in HEAD:
            table.add_column(name, justify="left" if name == "task" else "right")
        for task in tasks:
            table.add_row(*row(task, None if task.is_terminated else eta))
        return table
