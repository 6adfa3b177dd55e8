# SPDX-License-Identifier: Apache-2.0
"""Rows as text for a person and as JSON for a program."""

import itertools


def quantity(value, unit):
    if unit == "B":
        return f"{value / 2**20:.1f} MiB"
    for scale, name in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if value * scale >= 1:
            return f"{value * scale:.2f} {name}"
    return f"{value * 1e9:.0f} ns"


def table(rows):
    """The rows of one run; `x ours` above 1 means that we need less."""
    lines = [f"{'':24}{'best':>12}{'median':>12}{'spread':>9}{'x ours':>9}{'max ULP':>9}"]
    for case, group in itertools.groupby(rows, key=lambda row: row.case):
        group = list(group)
        ours = next((row for row in group if row.subject == "tvm"), None)
        lines.append(case)
        for row in group:
            ratio = f"{row.ratio(ours):.2f}" if ours else "-"
            ulp = "-" if row.ulp is None else f"{row.ulp:.2f}"
            best, median = (quantity(v, row.unit) for v in (min(row.samples), row.median))
            columns = f"{best:>12}{median:>12}{row.spread:>9.1%}{ratio:>9} {ulp:>8}"
            lines.append(f"  {row.subject:22}{columns}")
    return "\n".join(lines)


def as_json(rows):
    keys = ("case", "subject", "unit", "median", "spread", "ulp", "samples")
    return [{key: getattr(row, key) for key in keys} for row in rows]
