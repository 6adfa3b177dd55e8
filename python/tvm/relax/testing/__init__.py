# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of graphs."""

from . import nn, transform
from .ast_printer import dump_ast
from .nn import *  # noqa: F403
