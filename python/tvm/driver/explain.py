# SPDX-License-Identifier: Apache-2.0
"""What a program is compiled to, kernel by kernel."""

import tvm
from tvm import relax, tir


def lower(mod, target, relax_pipeline):
    """The module with its graphs lowered to calls of kernels."""
    from tvm._derive import function
    from tvm.relax.vm_build import as_pass

    if not any(isinstance(func, relax.Function) for func in mod.functions.values()):
        return mod
    passes = as_pass(relax_pipeline) or function("relax.pipeline._compile", __name__)(target)
    with target:
        return passes(mod)


def kernels(mod, target):
    """A row for each kernel of a lowered module, those with the most work first.

    "name", "calls" (in the text of the graphs), "operators" (the blocks it was made of), "rule"
    (how it is scheduled) and "flops" (of one call; None when it depends on shapes).
    """
    calls = _calls(mod)
    rows = []
    for var, func in mod.functions.items():
        if not isinstance(func, tir.PrimFunc):
            continue
        if func.attrs.get("tir.is_host_func") or var.name_hint.startswith("__vmtir__"):
            continue
        name = str(var.name_hint)
        rows.append(
            {
                "name": name,
                "calls": calls.get(name, 0),
                "operators": _operators(func),
                "rule": _rule(func, target),
                "flops": _flops(func),
            }
        )
    return sorted(rows, key=lambda row: (-(row["flops"] or 0) * max(row["calls"], 1), row["name"]))


def _calls(mod):
    """How often functions are called by graphs, by name."""
    counts: dict[str, int] = {}

    def visit(expr):
        if isinstance(expr, relax.Call):
            callees = [expr.op, *expr.args[:1]]  # a function that is called, or handed on to be
            for callee in callees:
                if isinstance(callee, tvm.ir.GlobalVar):
                    counts[str(callee.name_hint)] = counts.get(str(callee.name_hint), 0) + 1

    for func in mod.functions.values():
        if isinstance(func, relax.Function):
            relax.analysis.post_order_visit(func, visit)
    return counts


def _operators(func):
    names = []

    def visit(node):
        if isinstance(node, tir.Block) and node.name_hint != "root":
            names.append(str(node.name_hint))

    tir.stmt_functor.post_order_visit(func.body, visit)
    return names


def _rule(func, target):
    if tvm.get_global_func("tir.schedule.is_scheduled")(func):
        return "scheduled"
    sch = tir.Schedule(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}))
    rule = tvm.get_global_func("tir.schedule.apply_default_rules")(sch, "main", target)
    return str(rule) or "none"


def _flops(func):
    if any(not isinstance(dim, tir.IntImm) for b in func.buffer_map.values() for dim in b.shape):
        return None
    return float(tir.analysis.estimate_tir_flops(tvm.IRModule({"main": func})))


def table(rows):
    """The rows as text."""
    head = ("kernel", "calls", "MFLOP", "rule", "operators")
    cells = [
        (
            row["name"],
            str(row["calls"]),
            "?" if row["flops"] is None else f"{row['flops'] / 1e6:.3f}",
            row["rule"],
            " ".join(row["operators"]),
        )
        for row in rows
    ]
    widths = [max(len(line[i]) for line in (head, *cells)) for i in range(len(head))]
    lines = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in (head, *cells))
    return "\n".join(lines)
