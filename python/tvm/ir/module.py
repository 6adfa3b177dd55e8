# SPDX-License-Identifier: Apache-2.0
"""IRModule: the functions of a program, by name."""

from collections.abc import Mapping
from types import NoneType

import tvm_ffi

from tvm._derive import Node, construct, register_node

from .attrs import DictAttrs
from .expr import GlobalVar
from .function import BaseFunc, _attribute
from .pyfunc import with_pyfuncs


@register_node("ir.IRModule")
class IRModule(Node):
    """The functions of a program, by name: tvm.IRModule({"main": func})."""

    __slots__ = ("__dict__",)

    def __init__(self, functions=None, attrs=None, global_infos=None):
        if not isinstance(functions, (Mapping, tvm_ffi.Map, NoneType)):
            raise TypeError(
                "IRModule: expected a dictionary from names to functions, got "
                f"{type(functions).__name__}"
            )
        functions = {
            GlobalVar(k) if isinstance(k, str) else k: v for k, v in dict(functions or {}).items()
        }
        if attrs is None or isinstance(attrs, dict):
            attrs = DictAttrs({k: _attribute(v) for k, v in (attrs or {}).items()})
        construct(self, functions, attrs, global_infos or {})

    @property
    def pyfuncs(self):
        """{name: Python function} that belong to the module; they do not pass through C++."""
        return self.__dict__.setdefault("_pyfuncs", {})

    def script(self, **options):
        """The program as TVMScript."""
        text = super().script(**options)
        return with_pyfuncs(text, self.pyfuncs, options) if self.pyfuncs else text

    def __getitem__(self, var):
        return self._lookup(var)

    def __setitem__(self, var, func):
        if not isinstance(func, BaseFunc):
            raise TypeError(f"IRModule: expected a function, got {type(func).__name__}")
        if isinstance(var, str):
            var = self.get_global_var(var) if var in self else GlobalVar(var)
        self._update(var, func)

    def __delitem__(self, var):
        self._remove(var)

    def __contains__(self, var):
        return self._contains(var)

    def __iter__(self):
        return iter(self.get_global_vars())

    def __len__(self):
        return len(self.functions)

    def functions_items(self):
        """(variable, function) of all functions, in the order of their names."""
        return [(var, self[var]) for var in self.get_global_vars()]

    def items(self):
        return self.functions_items()

    def update(self, other):
        """Adds or replaces the functions of another module or dict."""
        if isinstance(other, dict):
            other = IRModule(other)
        for var, func in other.functions_items():
            self._update(var, func)

    def update_func(self, var, func):
        """Adds or replaces a function."""
        self._update(var, func)

    def replace_global_vars(self, replacements):
        """A copy with functions renamed, calls included."""

        def var_of(v):
            return self.get_global_var(v) if isinstance(v, str) else v

        new_vars = {
            var_of(k): GlobalVar(v) if isinstance(v, str) else v for k, v in replacements.items()
        }
        names = [new_vars.get(var, var).name_hint for var in self.get_global_vars()]
        if len(set(names)) != len(names):
            raise ValueError(f"replace_global_vars: expected unique names, got {names}")
        return self._replace_global_vars(new_vars)

    @staticmethod
    def from_expr(expr, functions=None):
        """A module with one function, named by its global symbol, else "main"."""
        if not isinstance(expr, BaseFunc):
            raise TypeError(f"from_expr: expected a function, got {type(expr).__name__}")
        name = expr.attrs.get("global_symbol") or "main"
        return IRModule({**(functions or {}), name: expr})

    def get_attr(self, attr_key):
        """An attribute, or None."""
        return self.attrs.get(attr_key)

    def with_attrs(self, attr_map):
        """A copy with attributes set."""
        module = self
        for key, value in dict(attr_map.items()).items():
            module = module.with_attr(key, _attribute(value))
        return module
