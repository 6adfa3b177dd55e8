# SPDX-License-Identifier: Apache-2.0
"""Operators as functions."""

from tvm.ir.expr import _is_int, _op, div_ambiguity_error


def add(lhs, rhs, span=None):
    return _op.add(lhs, rhs, span)


def subtract(lhs, rhs, span=None):
    return _op.sub(lhs, rhs, span)


def multiply(lhs, rhs, span=None):
    return _op.mul(lhs, rhs, span)


def divide(lhs, rhs, span=None):
    if _is_int(lhs) and _is_int(rhs):
        raise div_ambiguity_error()
    return _op.div(lhs, rhs, span)


def floordiv(lhs, rhs, span=None):
    return _op.floordiv(lhs, rhs, span)


def cast(src, dtype, span=None):
    return _op.cast(dtype, src, span)
