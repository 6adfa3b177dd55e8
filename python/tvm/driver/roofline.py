# SPDX-License-Identifier: Apache-2.0
"""How fast kernels are beside what the machine reaches: its multiply-adds and its memory."""

import dataclasses
import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import tvm
import tvm.relax.kernels
from tvm import relax, te
from tvm.ir import IRModule
from tvm.target import Target

_BYTES = 64 << 20  # of a copy that no cache of one core holds


@dataclasses.dataclass
class Machine:
    """What this machine reaches on the threads of a target."""

    flops: float  # per second, of multiply-adds in float32
    bandwidth: float  # bytes per second, read and written

    @classmethod
    def measured(cls, target: Target) -> "Machine":
        """By two kernels: multiply-adds in registers, and a copy of memory."""
        facts = target.machine()
        if not facts.is_host:
            raise ValueError(
                f"explain: expected a processor's target for a report, got {target.kind.name}"
            )
        lanes, sums = facts.vector_bits // 32, facts.vector_registers // 2
        tasks, rounds = 4 * facts.cores, 1 << 14
        seconds = _seconds(_multiply_adds(tasks, rounds, sums, lanes), target)
        flops = 2.0 * tasks * rounds * sums * lanes / seconds
        x = te.placeholder((_BYTES // 4,), "float32", "x")
        copy = te.create_prim_func([x, te.compute(x.shape, lambda i: x[i], "y")])
        return cls(flops, 2 * _BYTES / _seconds(copy, target))

    def limit(self, flops: float, moved: float) -> float:
        """The least seconds that so much work and memory take."""
        return max(flops / self.flops, moved / self.bandwidth)


def _multiply_adds(tasks, rounds, sums, lanes):
    """Sums that stay in registers, as many as hide the latency of an instruction."""
    from tvm.script import tir as T

    @T.prim_func
    def main(
        x: T.Buffer((sums, lanes), "float32"),  # type: ignore[valid-type]
        y: T.Buffer((tasks, sums, lanes), "float32"),  # type: ignore[valid-type]
    ):
        for task in T.parallel(tasks):
            with T.block("task"):
                t = T.axis.spatial(tasks, task)
                total = T.alloc_buffer((sums, lanes), "float32", scope="local")
                for i in T.unroll(sums):
                    for j in T.vectorized(lanes):
                        total[i, j] = x[i, j]
                for _ in T.serial(rounds):
                    for i in T.unroll(sums):
                        for j in T.vectorized(lanes):
                            total[i, j] = total[i, j] * x[0, j] + x[1, j]
                for i in T.unroll(sums):
                    for j in T.vectorized(lanes):
                        y[t, i, j] = total[i, j]

    return main


def _seconds(func, target):
    """Of one call, on random numbers: the least of a few samples."""
    built = tvm.build(func.with_attr("global_symbol", "main"), target)
    random = np.random.default_rng(0)
    args = []
    for param in func.params:
        if param not in func.buffer_map:
            raise ValueError(f"explain: expected tensors as parameters, got {param.name}")
        buffer = func.buffer_map[param]
        shape = [int(n) for n in buffer.shape]
        dtype = np.dtype(getattr(ml_dtypes, buffer.dtype, buffer.dtype))
        # Integers may be indices: there is something at 0.
        is_real = buffer.dtype.startswith(("float", "bfloat"))
        numbers = random.random(shape) if is_real else np.zeros(shape)
        args.append(tvm.runtime.tensor(numbers.astype(dtype)))
    timer = built.time_evaluator("main", tvm.cpu(), number=1, repeat=3, min_repeat_ms=10)
    return float(min(timer(*args).results))


def measure(
    rows: Sequence[dict[str, Any]], mod: IRModule, target: Target, machine: Machine
) -> None:
    """Adds "seconds" of a call and "reached", the part of what the machine could do, to the rows
    of kernels whose sizes are known."""
    funcs = relax.kernels.kernels(mod)
    for row in rows:
        func = funcs[row["name"]]
        if row["flops"] is None or any(p not in func.buffer_map for p in func.params):
            continue
        row["seconds"] = _seconds(func, target)
        row["reached"] = machine.limit(row["flops"], row["bytes"]) / row["seconds"]


def page(rows: Sequence[Mapping[str, Any]], machine: Machine) -> str:
    """The rows as a page: a table, and a plot of speed over intensity, in logarithms."""
    timed = [row for row in rows if "seconds" in row and row["flops"] and row["bytes"]]
    head = "".join(
        f"<th>{name}</th>"
        for name in ("kernel", "calls", "MFLOP", "MB", "µs", "% of the limit", "rule", "blocking")
    )
    lines = []
    for row in rows:
        cells = (
            row["name"],
            row["calls"],
            _shown(row["flops"], 1e6),
            _shown(row["bytes"], 1e6),
            _shown(row.get("seconds"), 1e-6),
            _shown(row.get("reached"), 0.01),
            row["rule"],
            row["blocking"],
        )
        lines.append("<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in cells) + "</tr>")
    summary = (
        f"{machine.flops / 1e9:.0f} GFLOP/s in float32, {machine.bandwidth / 1e9:.1f} GB/s measured"
    )
    return (
        "<!DOCTYPE html><meta charset='utf-8'><title>Kernels</title>"
        "<style>body{font:14px sans-serif}td,th{padding:2px 8px;text-align:left}"
        "circle{fill:#07c;opacity:.6}</style>"
        f"<h1>Kernels</h1><p>{summary}</p>{_plot(timed, machine)}"
        f"<table><tr>{head}</tr>{''.join(lines)}</table>\n"
    )


def _shown(value, unit):
    return "?" if value is None else f"{value / unit:.3f}"


def _plot(rows, machine):
    width, height = 720, 400
    ridge = machine.flops / machine.bandwidth  # FLOP per byte where both limits meet
    intensities = [row["flops"] / row["bytes"] for row in rows] + [ridge / 8, ridge * 8]
    speeds = [row["flops"] / row["seconds"] for row in rows] + [machine.flops]
    left, right = math.log10(min(intensities)) - 0.1, math.log10(max(intensities)) + 0.1
    low, high = math.log10(min(speeds)) - 0.3, math.log10(machine.flops) + 0.2

    def place(intensity, speed):
        x = (math.log10(intensity) - left) / (right - left) * width
        y = height - (math.log10(speed) - low) / (high - low) * height
        return f"{x:.1f}", f"{y:.1f}"

    bends = [10**left, ridge, 10**right]
    roof = " ".join(",".join(place(i, min(machine.flops, i * machine.bandwidth))) for i in bends)
    dots = []
    for row in rows:
        x, y = place(row["flops"] / row["bytes"], row["flops"] / row["seconds"])
        title = f"{row['name']}: {row['flops'] / row['seconds'] / 1e9:.1f} GFLOP/s"
        dots.append(f"<circle cx='{x}' cy='{y}' r='5'><title>{html.escape(title)}</title></circle>")
    return (
        f"<svg viewBox='0 0 {width} {height + 20}' width='{width}'>"
        f"<polyline points='{roof}' fill='none' stroke='#555'/>{''.join(dots)}"
        f"<text x='{width - 130}' y='{height + 15}'>FLOP per byte</text>"
        "<text x='4' y='14'>FLOP per second</text></svg>"
    )
