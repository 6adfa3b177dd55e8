# SPDX-License-Identifier: Apache-2.0
"""Contexts: patterns of several bindings, by the constraints between them."""

import tvm_ffi

from tvm._derive import Node, construct, register_node

_current_context = tvm_ffi.get_global_func("relax.dpl._current_context")


@register_node("relax.dpl.PatternContext")
class PatternContext(Node):
    """`with PatternContext() as ctx:` collects the constraints of patterns that are made inside;
    an incremental one begins with those of the context around it."""

    def __init__(self, incremental=False):
        around = _current_context() if incremental else None
        if incremental and around is None:
            raise ValueError("PatternContext: expected a context around an incremental one")
        construct(self, around.constraints if incremental else [])

    def __enter__(self):
        self._enter()
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        self._exit()

    @staticmethod
    def current():
        """The innermost context; RuntimeError outside of all."""
        context = _current_context()
        if context is None:
            raise RuntimeError("PatternContext.current: expected to be inside of a PatternContext")
        return context
