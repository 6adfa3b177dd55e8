# SPDX-License-Identifier: Apache-2.0
"""Errors at a place of the source."""

import difflib

from tvm.error import DiagnosticError


class ParserError(Exception):
    """What is wrong with a node of the syntax tree; the parser turns it into a DiagnosticError."""

    def __init__(self, node, msg):
        super().__init__(msg)
        self.node = node
        self.source = None  # where the node comes from, filled by the parser


def did_you_mean(name, names):
    """The nearest of the names as the end of a message, or nothing."""
    near = difflib.get_close_matches(name, [n for n in names if n[:1] != "_"], n=1)
    return f", did you mean '{near[0]}'?" if near else ""


__all__ = ["DiagnosticError", "ParserError", "did_you_mean"]
