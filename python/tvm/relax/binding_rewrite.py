# SPDX-License-Identifier: Apache-2.0
"""DataflowBlockRewrite: one dataflow block of a function changed step by step."""

from tvm._derive import Node, register_node

from .expr import Binding
from .utils import convert_to_expr


@register_node("relax.DataflowBlockRewrite")
class DataflowBlockRewrite(Node):
    def add_binding(self, binding):
        """Adds a binding at the end of the block."""
        self._add(binding, None, False)

    def add(self, expr, name=None, is_dfvar=False):
        """Adds a binding of the expression, or a binding, at the end of the block; returns its
        variable."""
        expr = expr if isinstance(expr, Binding) else convert_to_expr(expr)
        return self._add(expr, name, is_dfvar)

    def mutate_irmodule(self, irmodule):
        """The module with the function as it is now."""
        module = irmodule.clone()
        for var, func in irmodule.functions_items():
            if func.same_as(self.root_fn):
                module.update_func(var, self.mutated_root_fn())
        return module
