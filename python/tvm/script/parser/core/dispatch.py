# SPDX-License-Identifier: Apache-2.0
"""How a language reads statements, and what operators mean on values of other libraries.

A decorator with an attribute `dispatch_token` opens the language of that token; a language without
a visitor of its own for a statement uses the one of "default".
"""

import ast

from .evaluator import OPERATORS
from .parser import _VISITORS

# Not kinds of statements: the definition under a decorator, and its signature, read before.
_DEFINITIONS = {"FunctionDef": "function", "tvm_declare_function": "declare"}


def _kind(type_name):
    kind = _DEFINITIONS.get(type_name) or getattr(ast, type_name, None)
    if isinstance(kind, str) or isinstance(kind, type) and issubclass(kind, ast.stmt):
        return kind
    raise ValueError(
        f"dispatch: expected a statement of Python's ast, such as 'For', got {type_name!r}"
    )


def register(token, type_name):
    """@register("mine", "For"): a function (parser, node) that reads such a statement."""

    def decorate(method):
        _VISITORS[token, _kind(type_name)] = method
        return method

    return decorate


def get(token, type_name, default=None):
    """What reads such a statement, or the default."""
    return _VISITORS.get((token, _kind(type_name)), default)


def register_op(operand_type, op_node_type, operand_index):
    """@register_op(Mine, doc.Add, 0): a function (left, right) for an operand of that class."""

    def decorate(method):
        OPERATORS[operand_type, op_node_type, operand_index] = method
        return method

    return decorate


def get_op(operand_type, op_node_type, operand_index, default=None):
    return OPERATORS.get((operand_type, op_node_type, operand_index), default)


__all__ = ["get", "get_op", "register", "register_op"]
