# SPDX-License-Identifier: Apache-2.0
"""Analyses of modules."""

from .expr import GlobalVar


def collect_call_map(module):
    """{function: the functions of the module it calls}, by GlobalVar."""
    from tvm import relax
    from tvm.tir import Call, PrimFunc, stmt_functor

    calls = {}
    for var, func in module.functions_items():
        found = calls.setdefault(var, [])

        def visit(node, found=found):
            if isinstance(node, Call) and isinstance(node.op, GlobalVar) and node.op not in found:
                found.append(node.op)

        if isinstance(func, PrimFunc):
            stmt_functor.post_order_visit(func.body, visit)
        elif isinstance(func, relax.Function):
            found.extend(relax.analysis.all_global_vars(func))
    return calls
