# SPDX-License-Identifier: Apache-2.0
"""Rewriting what matches a pattern."""

import tvm_ffi

from tvm._derive import Node, construct, fill

from .pattern import register_df_node

_dpl, _ = fill("tvm.relax.dpl")
rewrite_call = _dpl("rewrite_call")
rewrite_bindings = _dpl("rewrite_bindings")


@register_df_node
class PatternMatchingRewriter(Node):
    """Rewrites what matches, in a function or in all functions of a module."""

    @staticmethod
    def from_pattern(pattern, func):
        """Replaces what matches by `func(expression, {pattern: expression})`, which may return
        None."""
        return ExprPatternRewriter(pattern, func)

    @staticmethod
    def from_module(mod):
        """Replaces what the function `pattern` of the module spells out by what its function
        `replacement` does; private functions that it calls come along."""
        return PatternMatchingRewriter._from_module(mod)

    def __call__(self, obj):
        return self._run(obj)

    def __or__(self, other):
        return OrRewriter(self, other)


@register_df_node
class ExprPatternRewriter(PatternMatchingRewriter):
    def __init__(self, pattern, func):
        construct(self, pattern, tvm_ffi.convert(func), {})


@register_df_node
class OrRewriter(PatternMatchingRewriter):
    def __init__(self, lhs, rhs):
        construct(self, lhs, rhs, {})


@register_df_node
class TupleRewriter(PatternMatchingRewriter):
    def __init__(self, patterns, func):
        construct(self, patterns, tvm_ffi.convert(func), {})
