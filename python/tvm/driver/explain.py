# SPDX-License-Identifier: Apache-2.0
"""What a program is compiled to, kernel by kernel."""

from __future__ import annotations

import math
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
    (how it is scheduled), "blocking" (of the loops with the most iterations: what threads share,
    what is unrolled, what is a vector), "flops" and "bytes" (of one call, of all that enters and
    leaves; None when they depend on shapes).
    """
    calls = relax.kernels.calls(mod)
    rows = []
    for name, func in relax.kernels.kernels(mod).items():
        rule, scheduled = _scheduled(func, target)
        rows.append(
            {
                "name": name,
                "calls": calls.get(name, 0),
                "operators": _operators(func),
                "rule": rule,
                "blocking": _blocking(scheduled),
                "flops": _flops(func) if _is_static(func) else None,
                "bytes": _bytes(func) if _is_static(func) else None,
            }
        )
    return sorted(rows, key=lambda row: (-(row["flops"] or 0) * max(row["calls"], 1), row["name"]))


def _operators(func):
    names = []

    def visit(node):
        if isinstance(node, tir.Block) and node.name_hint != "root":
            names.append(str(node.name_hint))

    tir.stmt_functor.post_order_visit(func.body, visit)
    return names


def _scheduled(func, target):
    """How it is scheduled, and what it is then."""
    if tvm.get_global_func("tir.schedule.is_scheduled")(func):
        return "scheduled", func
    sch = tir.Schedule(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}))
    rule = tvm.get_global_func("tir.schedule.apply_default_rules")(sch, "main", target)
    return str(rule) or "none", sch.mod["main"]


def _blocking(func):
    """For example "256 parallel, 4 x 6 unrolled, 16 lanes"."""
    kinds = {
        tir.ForKind.PARALLEL: "parallel",
        tir.ForKind.UNROLLED: "unrolled",
        tir.ForKind.VECTORIZED: "lanes",
    }
    most, text = 0, ""

    def visit(stmt, loops):
        nonlocal most, text
        if isinstance(stmt, tir.For):
            return visit(stmt.body, [*loops, stmt])
        if isinstance(stmt, tir.BufferStore) or (
            isinstance(stmt, tir.Evaluate) and isinstance(stmt.value, tir.Call)
        ):
            sizes = [
                int(loop.extent) if isinstance(loop.extent, tir.IntImm) else 1 for loop in loops
            ]
            count = math.prod(sizes)
            if count < most:
                return None
            found = {
                name: [n for n, loop in zip(sizes, loops, strict=True) if loop.kind == kind]
                for kind, name in kinds.items()
            }
            parts = (
                " x ".join(str(n) for n in numbers if n > 1) + f" {name}"
                for name, numbers in found.items()
                if any(n > 1 for n in numbers)
            )
            most, text = count, ", ".join(parts)
            return None
        for child in _inside(stmt):
            visit(child, loops)
        return None

    visit(func.body, [])
    return text


def _inside(stmt):
    if isinstance(stmt, tir.SeqStmt):
        return list(stmt.seq)
    if isinstance(stmt, tir.BlockRealize):
        return [stmt.block]
    parts = (getattr(stmt, name, None) for name in ("body", "then_case", "else_case"))
    return [part for part in parts if isinstance(part, tir.Stmt)]


def _is_static(func):
    dims = [dim for b in func.buffer_map.values() for dim in b.shape]
    return all(isinstance(dim, tir.IntImm) for dim in dims)


def _flops(func):
    return float(tir.analysis.estimate_tir_flops(tvm.IRModule({"main": func})))


def _bytes(func):
    sizes = (math.prod(int(n) for n in b.shape) for b in func.buffer_map.values())
    types = (tvm.DataType(b.dtype) for b in func.buffer_map.values())
    return float(sum(n * t.bits * t.lanes / 8 for n, t in zip(sizes, types, strict=True)))


def _number(value, unit):
    return "?" if value is None else f"{value / unit:.3f}"


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as text; with the time they take where that was measured."""
    columns = {
        "kernel": lambda row: row["name"],
        "calls": lambda row: str(row["calls"]),
        "MFLOP": lambda row: _number(row["flops"], 1e6),
        "MB": lambda row: _number(row["bytes"], 1e6),
    }
    if any("seconds" in row for row in rows):
        columns["us"] = lambda row: _number(row.get("seconds"), 1e-6)
        columns["% of the limit"] = lambda row: _number(row.get("reached"), 0.01)
    columns["rule"] = lambda row: row["rule"]
    columns["blocking"] = lambda row: row["blocking"] or "-"
    columns["operators"] = lambda row: " ".join(row["operators"])
    head = tuple(columns)
    cells = [tuple(cell(row) for cell in columns.values()) for row in rows]
    widths = [max(len(line[i]) for line in (head, *cells)) for i in range(len(head))]
    lines = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in (head, *cells))
    return "\n".join(lines)
