# SPDX-License-Identifier: Apache-2.0
"""Systems of linear equations and inequalities over the integers."""

from tvm._derive import Node, fill, function, register_node

_from_range = function("arith._group_bounds_from_range", __name__)
_equations = function("arith._solve_equations", __name__)
_inequalities = function("arith._solve_inequalities", __name__)
_deskewed = function("arith._solve_inequalities_deskew", __name__)


@register_node("arith.IntGroupBounds")
class IntGroupBounds(Node):
    @staticmethod
    def from_range(rng):
        """The bounds a range stands for."""
        return _from_range(rng)


@register_node("arith.IntConstraints")
class IntConstraints(Node):
    pass


def _system(equations, variables, ranges):
    if isinstance(equations, IntConstraints):
        return equations
    if variables is None:
        variables = _variables(equations)
    return IntConstraints(variables, ranges or {}, equations)


def _variables(equations):
    """Those of the equations, in the order in which they occur."""
    from tvm.tir import Var
    from tvm.tir.stmt_functor import post_order_visit

    found = {}
    for equation in equations:
        post_order_visit(equation, lambda e: found.setdefault(e, e) if isinstance(e, Var) else None)
    return list(found)


def solve_linear_equations(equations, variables=None, ranges=None):
    """The solutions of linear equations: an IntConstraintsTransform to new, independent variables.

    `equations` is a list, or an IntConstraints that has the variables and ranges as well."""
    return _equations(_system(equations, variables, ranges))


def solve_linear_inequalities(equations, variables=None, ranges=None, deskew_range=False):
    """Ranges of the variables, each in terms of those before it, as an IntConstraints; what ranges
    cannot say stays in its relations. With `deskew_range` the ranges start at 0 and belong to new
    variables: the result is an IntConstraintsTransform."""
    return (_deskewed if deskew_range else _inequalities)(_system(equations, variables, ranges))


__getattr__, __dir__ = fill(__name__)
