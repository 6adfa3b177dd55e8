# SPDX-License-Identifier: Apache-2.0
"""Errors at a place of the source."""

from tvm.error import DiagnosticError


class ParserError(Exception):
    """What is wrong with a node of the syntax tree; the parser turns it into a DiagnosticError."""

    def __init__(self, node, msg):
        super().__init__(msg)
        self.node = node
        self.source = None  # where the node comes from, filled by the parser


__all__ = ["DiagnosticError", "ParserError"]
