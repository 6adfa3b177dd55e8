# SPDX-License-Identifier: Apache-2.0
"""Helpers for backends."""


def has_leaking_intermediate_variables(context):
    """Whether a value inside of a match is used outside of it."""
    matched = set(context.matched_bindings)
    result = context.value_to_bound_var[context.matched_expr]
    return any(
        user not in matched
        for var in matched
        if not var.same_as(result)
        for user in context.var_usages[var]
    )
