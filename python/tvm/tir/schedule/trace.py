# SPDX-License-Identifier: Apache-2.0
"""Traces: the primitives that were applied, in order."""

from typing import Any

from tvm._derive import Node, register_node

DECISION_TYPE = JSON_TYPE = Any


@register_node("tir.Trace")
class Trace(Node):
    def __str__(self):
        return "\n".join(
            [
                "# from tvm import tir",
                "def apply_trace(sch: tir.Schedule) -> None:",
                *(f"  {line}" for line in self.as_python() or ["pass"]),
            ]
        )

    __repr__ = __str__

    def show(self, style=None, black_format=False):
        """Prints the trace as Python, coloured where the terminal or notebook can show colours."""
        from tvm.script.highlight import cprint

        cprint(str(self), style=style, black_format=black_format)
