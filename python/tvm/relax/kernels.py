# SPDX-License-Identifier: Apache-2.0
"""The kernels that graphs become: lowering up to them, and how often they are called."""

from tvm import ir, tir
from tvm._derive import function
from tvm.target import Target

from .analysis import post_order_visit
from .expr import Call, Function


def lower(mod, target, relax_pipeline="default"):
    """The module with its graphs lowered to calls of kernels, as tvm.compile lowers it."""
    from .vm_build import as_pass

    if not any(isinstance(func, Function) for func in mod.functions.values()):
        return mod
    target = Target.canon_target(target)
    passes = as_pass(relax_pipeline) or function("relax.pipeline._compile", __name__)(target)
    with target:
        return passes(mod)


def calls(mod):
    """{name: how often the text of the graphs calls the function}"""
    counts: dict[str, int] = {}

    def visit(expr):
        if not isinstance(expr, Call):
            return
        for callee in (expr.op, *expr.args[:1]):  # called, or handed on to be called
            if isinstance(callee, ir.GlobalVar):
                counts[str(callee.name_hint)] = counts.get(str(callee.name_hint), 0) + 1

    for func in mod.functions.values():
        if isinstance(func, Function):
            post_order_visit(func, visit)
    return counts


def kernels(mod):
    """{name: PrimFunc} without those that compute shapes or run graphs."""
    return {
        str(var.name_hint): func
        for var, func in mod.functions.items()
        if isinstance(func, tir.PrimFunc) and not func.attrs.get("tir.is_host_func")
    }
