# SPDX-License-Identifier: Apache-2.0
"""Rewriting modules: quantization, sharding, other layers in place of some."""

import functools
from collections.abc import Callable, Iterable

from . import core


def _name(prefix, key):
    return f"{prefix}.{key}" if prefix else str(key)


class Mutator:
    """Visits what is in a module and sets what the visits return in its place. Override the methods
    of the kinds that change; they call `visit` to go on with what is inside."""

    def visit_module(self, name, node):
        return self.visit(name, node)

    def visit_effect(self, name, node):
        return node

    def visit_param(self, name, node):
        return node

    def visit_moduledict(self, name, node):
        return self.visit(name, node)

    def visit_modulelist(self, name, node):
        return self.visit(name, node)

    def _visits(self):
        return (
            (core.ModuleList, self.visit_modulelist),
            (core.ModuleDict, self.visit_moduledict),
            (core.Module, self.visit_module),
            (core.Effect, self.visit_effect),
            (core.Parameter, self.visit_param),
        )

    def visit(self, name, node):
        """Visits what is in a module, which it returns."""
        items: Iterable
        put: Callable
        if isinstance(node, core.ModuleList):
            items, put = enumerate(node), node.__setitem__
        elif isinstance(node, core.ModuleDict):
            items, put = node.items(), node.__setitem__
        elif isinstance(node, core.Module):
            items, put = vars(node).items(), functools.partial(setattr, node)
        else:
            raise TypeError(f"Mutator: expected a module for '{name}', got {type(node).__name__}")
        for key, value in list(items):
            for kind, visit in self._visits():
                if isinstance(value, kind):
                    put(key, visit(_name(name, key), value))
                    break
        return node
