# SPDX-License-Identifier: Apache-2.0
"""The pattern language: matching parts of graphs and rewriting them."""

from tvm._derive import fill

from .context import PatternContext
from .pattern import *  # noqa: F403
from .rewrite import (
    ExprPatternRewriter,
    OrRewriter,
    PatternMatchingRewriter,
    TupleRewriter,
    rewrite_bindings,
    rewrite_call,
)

__getattr__, __dir__ = fill(__name__)
