# SPDX-License-Identifier: Apache-2.0
"""The syntax tree that the parser reads: Python's own, under the names `doc.For`, `doc.Name`, …

Elsewhere these are copies of Python's classes; here a tree is used as `ast` makes it, so converting
one is the identity.
"""

import ast
from ast import NodeTransformer, NodeVisitor, parse


def to_doc(node):
    """A tree of Python's `ast`, as it is."""
    return node


def from_doc(node):
    """A tree for Python's `ast`, as it is."""
    return node


def _no_conversion(name):
    raise NotImplementedError(
        f"script.parser.core.doc: expected no conversion of {name}: trees are Python's own"
    )


register_to_doc = register_from_doc = _no_conversion


def __getattr__(name):
    kind = getattr(ast, name, None)
    if not (isinstance(kind, type) and issubclass(kind, ast.AST)):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return kind


def __dir__():
    kinds = [n for n, kind in vars(ast).items() if isinstance(kind, type)]
    return sorted([*kinds, *__all__])


__all__ = [
    "NodeTransformer",
    "NodeVisitor",
    "from_doc",
    "parse",
    "register_from_doc",
    "register_to_doc",
    "to_doc",
]
