# SPDX-License-Identifier: Apache-2.0
"""What a program is compiled to, kernel by kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tvm
import tvm.relax.kernels
from tvm import relax, tir

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.target import Target


def kernels(mod: IRModule, target: Target) -> list[dict[str, Any]]:
    """A row for each kernel of a lowered module, those with the most work first.

    "name", "calls" (in the text of the graphs), "operators" (the blocks it was made of), "rule"
    (how it is scheduled) and "flops" (of one call; None when it depends on shapes).
    """
    calls = relax.kernels.calls(mod)
    rows = [
        {
            "name": name,
            "calls": calls.get(name, 0),
            "operators": _operators(func),
            "rule": _rule(func, target),
            "flops": _flops(func),
        }
        for name, func in relax.kernels.kernels(mod).items()
    ]
    return sorted(rows, key=lambda row: (-(row["flops"] or 0) * max(row["calls"], 1), row["name"]))


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


def table(rows: Sequence[Mapping[str, Any]]) -> str:
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
