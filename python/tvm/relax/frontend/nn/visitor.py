# SPDX-License-Identifier: Apache-2.0
"""Rewriting modules: quantization, sharding, other layers in place of some."""

from . import core


def _name(prefix, key):
    return f"{prefix}.{key}" if prefix else str(key)


class Mutator:
    """Visits a module and sets what the visits return in place of what was visited. Override the
    methods of the kinds that change."""

    def visit_module(self, name, node):
        """A module: by default its attributes are visited."""
        for key, value in list(node.__dict__.items()):
            if isinstance(value, (core.Module, core.Parameter, core.Effect)):
                setattr(node, key, self.visit(_name(name, key), value))
        return node

    def visit_effect(self, name, node):
        return node

    def visit_param(self, name, node):
        return node

    def visit_moduledict(self, name, node):
        for key, value in list(node.items()):
            node[key] = self.visit(_name(name, key), value)
        return node

    def visit_modulelist(self, name, node):
        for i, value in enumerate(list(node)):
            node[i] = self.visit(_name(name, i), value)
        return node

    def visit(self, name, node):
        """What takes the place of the node."""
        for kind, visit in (
            (core.ModuleList, self.visit_modulelist),
            (core.ModuleDict, self.visit_moduledict),
            (core.Module, self.visit_module),
            (core.Effect, self.visit_effect),
            (core.Parameter, self.visit_param),
        ):
            if isinstance(node, kind):
                return visit(name, node)
        raise TypeError(
            f"Mutator: expected a module, an effect or a parameter for '{name}', "
            f"got {type(node).__name__}"
        )
