# SPDX-License-Identifier: Apache-2.0
"""Tasks found in a larger program."""

from .utils import Interface


class ExtractedTask(Interface):
    """A piece of a program to tune: its module, for a target, and how often it occurs."""

    def __init__(self, task_name, mod, target, dispatched, weight):
        self.task_name, self.mod, self.target = task_name, mod, target
        self.dispatched, self.weight = list(dispatched), weight
