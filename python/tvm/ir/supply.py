# SPDX-License-Identifier: Apache-2.0
"""Fresh names."""

from .expr import GlobalVar


class NameSupply:
    """Names that are not taken yet."""

    def __init__(self, prefix=""):
        self.prefix = prefix
        self._taken = set()

    def _full(self, name, add_prefix, add_underscore=True):
        if not self.prefix or not add_prefix:
            return name
        return f"{self.prefix}{'_' if add_underscore else ''}{name}"

    def fresh_name(self, name, add_prefix=True, add_underscore=True):
        """`name`, or `name_1`, `name_2`, ... when it is taken; it is taken from now on."""
        full = self._full(name, add_prefix, add_underscore)
        fresh, n = full, 0
        while fresh in self._taken:
            n += 1
            fresh = f"{full}_{n}"
        self._taken.add(fresh)
        return fresh

    def reserve_name(self, name, add_prefix=True):
        """Takes a name."""
        full = self._full(name, add_prefix)
        self._taken.add(full)
        return full

    def contains_name(self, name, add_prefix=True):
        """Whether a name is taken."""
        return self._full(name, add_prefix) in self._taken


class GlobalVarSupply:
    """GlobalVars with names that are not taken in some modules."""

    def __init__(self, value=None):
        self._names = value if isinstance(value, NameSupply) else NameSupply()
        self._vars = {}
        modules = [] if value is None or isinstance(value, NameSupply) else value
        for module in modules if isinstance(modules, (list, tuple)) else [modules]:
            for var in module.get_global_vars():
                self.reserve_global(var, True)

    def fresh_global(self, name, add_prefix=True):
        var = GlobalVar(self._names.fresh_name(name, add_prefix))
        self._vars[var.name_hint] = var
        return var

    def unique_global_for(self, name, add_prefix=True):
        """The variable of a name, made when it does not exist."""
        full = self._names._full(name, add_prefix)
        return self._vars[full] if full in self._vars else self.fresh_global(name, add_prefix)

    def reserve_global(self, global_var, allow_conflict=False):
        name = global_var.name_hint
        if not allow_conflict and self._names.contains_name(name, False):
            raise ValueError(f"reserve_global: expected a name that is not taken, got '{name}'")
        self._names.reserve_name(name, False)
        self._vars[name] = global_var
