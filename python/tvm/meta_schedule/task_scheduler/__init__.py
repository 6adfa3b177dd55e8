# SPDX-License-Identifier: Apache-2.0
"""Task schedulers: which task gets the next round, and the loop around it all."""

from abc import abstractmethod
from typing import Literal

from ..utils import create as _create
from .loop import TaskRecord, TuningLoop, logger


class TaskScheduler(TuningLoop):
    """Divides trials among tasks."""

    @abstractmethod
    def next_task_id(self):
        """The task of the next round; -1 when all have ended."""
        raise NotImplementedError

    @staticmethod
    def create(kind="gradient", *args, **kwargs):
        """The scheduler of a kind: "gradient" or "round-robin"."""
        kinds = {"gradient": GradientBased, "round-robin": RoundRobin}
        return _create(kinds, kind, "task scheduler", args, kwargs)


TaskScheduler.TaskSchedulerType = TaskScheduler | Literal["gradient", "round-robin"]
create = TaskScheduler.create


class PyTaskScheduler(TaskScheduler):
    """Base of user-defined schedulers: `next_task_id`, and whatever of the loop they replace."""


class RoundRobin(TaskScheduler):
    """One task after the other."""

    def __init__(self):
        super().__init__()
        self._last = -1

    def next_task_id(self):
        n = len(self.tasks_)
        for step in range(1, n + 1):
            task_id = (self._last + step) % n
            if not self.tasks_[task_id].is_terminated:
                self._last = task_id
                return task_id
        return -1


class GradientBased(TaskScheduler):
    """The task where the next round promises to save most.

    What a round saved lately (over `window_size` rounds) counts `alpha`, the hope that the time
    falls as it did on average since the start the rest; both times the weight of the task.
    """

    def __init__(self, *, alpha=0.2, window_size=3, seed=-1):
        super().__init__()
        self.alpha, self.window_size, self.seed = alpha, window_size, seed

    def next_task_id(self):
        open_tasks = [i for i, t in enumerate(self.tasks_) if not t.is_terminated]
        for task_id in open_tasks:
            if not self.tasks_[task_id].best_history:
                return task_id
        return max(open_tasks, key=self._promise, default=-1)

    def _promise(self, task_id):
        task = self.tasks_[task_id]
        history = task.best_history
        if history[-1] is None:  # nothing ran yet: it needs a round more than all others
            return float("inf")
        known = [h for h in history if h is not None]
        window = known[-1 - self.window_size :]
        lately = (window[0] - window[-1]) / max(1, len(window) - 1)
        hoped = known[-1] / len(history)
        return task.task_weight * (self.alpha * lately + (1 - self.alpha) * hoped)
