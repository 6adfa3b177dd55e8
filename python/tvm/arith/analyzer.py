# SPDX-License-Identifier: Apache-2.0
"""The analyzer as a Python class: scopes, settings."""

import enum

from tvm._derive import Node, fill, register_node


class ProofStrength(enum.IntEnum):
    """How much effort a proof may take."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


class Extension(enum.Flag):
    """What the simplifier may do beyond the default."""

    NoExtensions = 0
    TransitivelyProveInequalities = 1 << 0
    ConvertBooleanToAndOfOrs = 1 << 1
    ApplyConstraintsToBooleanBranches = 1 << 2
    ComparisonOfProductAndSum = 1 << 3


@register_node("arith.ModularSet")
class ModularSet(Node):
    pass


@register_node("arith.ConstIntBound")
class ConstIntBound(Node):
    POS_INF = (1 << 63) - 1
    NEG_INF = -POS_INF

    def __repr__(self):
        names = {self.POS_INF: "pos_inf", self.NEG_INF: "neg_inf"}
        low, high = (names.get(v, v) for v in (self.min_value, self.max_value))
        return f"ConstIntBound[{low}, {high}]"

    __str__ = __repr__


class ConstraintScope:
    """A condition that holds inside a `with` block."""

    def __init__(self, fenter):
        self._fenter = fenter
        self._fexit = None

    def __enter__(self):
        self._fexit = self._fenter()

    def __exit__(self, ptype, value, trace):
        self._fexit()


@register_node("arith.Analyzer")
class Analyzer(Node):
    _not_pickled = "its facts hold where they were entered"

    def constraint_scope(self, constraint):
        """`with analyzer.constraint_scope(x < n):` assumes the condition inside the block."""
        return ConstraintScope(lambda: self._enter(constraint))

    @property
    def rewrite_simplify_stats(self):
        """How often nodes were visited and rules tried and used."""
        return {str(k): v for k, v in self._stats().items()}

    @property
    def enabled_extensions(self):
        return Extension(self._get_extensions())

    @enabled_extensions.setter
    def enabled_extensions(self, flags):
        self._set_extensions(Extension(flags).value)


__getattr__, __dir__ = fill(__name__)
