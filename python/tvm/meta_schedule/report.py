# SPDX-License-Identifier: Apache-2.0
"""report.html: what a tuning run found, in one file without links."""

import html
import math

import tvm

from .progress import HEAD, duration, row
from .task_scheduler.loop import mean
from .utils import written_whole

_STYLE = """
:root { color-scheme: light dark; --text: #1d2733; --dim: #5b6b7c; --page: #fff; --panel: #f4f6f9;
        --line: #dde3ea; --dot: #9fb3c8; --best: #1f6feb; --default: #b06c00; --failed: #c0392b; }
@media (prefers-color-scheme: dark) {
  :root { --text: #dbe3ec; --dim: #93a4b6; --page: #14191f; --panel: #1d242c; --line: #323d49;
          --dot: #5d7184; --best: #6ea8fe; --default: #f0b354; --failed: #ff7b6b; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; padding: 0 1rem;
       max-width: 70rem; color: var(--text); background: var(--page); }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .6rem 0; }
th, td { padding: .25rem .8rem; border-bottom: 1px solid var(--line); text-align: right;
         white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td { font-variant-numeric: tabular-nums; }
pre { background: var(--panel); padding: .8rem; overflow: auto; font-size: 12px;
      max-height: 32rem; }
.two { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem; }
@media (max-width: 50rem) { .two { grid-template-columns: minmax(0, 1fr); } }
.text th:last-child, .text td:last-child { text-align: left; white-space: normal; }
.note { color: var(--dim); overflow-wrap: anywhere; }
svg { background: var(--panel); border: 1px solid var(--line); box-sizing: border-box;
      display: block; width: 100%; min-width: 34rem; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: var(--dim); }
svg .grid { stroke: var(--line); } svg .dot { fill: var(--dot); }
svg .failed { stroke: var(--failed); } svg .best { fill: none; stroke: var(--best);
  stroke-width: 2; }
svg .default { stroke: var(--default); stroke-dasharray: 5 4; }
svg text.on { paint-order: stroke; stroke: var(--panel); stroke-width: 4px; fill: var(--default); }
"""


def _table(head, rows, kind=""):
    cells = lambda tag, values: "".join(f"<{tag}>{html.escape(str(v))}</{tag}>" for v in values)
    body = "".join(f"<tr>{cells('td', r)}</tr>" for r in rows)
    return f"<div class=wide><table class='{kind}'><tr>{cells('th', head)}</tr>{body}</table></div>"


def _ticks(low, high):
    """Round numbers between two others: 1, 2 and 5 times powers of ten, or closer together."""
    for steps in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7), [1 + i / 10 for i in range(90)]):
        first = math.floor(math.log10(low))
        powers = range(first, math.ceil(math.log10(high)) + 1)
        ticks = [s * 10.0**p for p in powers for s in steps if low <= s * 10.0**p <= high]
        if len(ticks) >= 3:
            return ticks[:: max(1, len(ticks) // 6)]
    return ticks


def _curve(times, default, width=900, height=260):
    """Times of trials (None for failures) as dots, the best so far as a line."""
    good = [t for t in times if t is not None]
    if not good:
        return "<p class=note>No trial succeeded.</p>"
    left, top, right, bottom = 70, 12, width - 12, height - 30
    values = good + ([default] if default else [])
    # Beyond ten times the best, how slow a candidate is does not matter.
    low, high = min(values), min(max(values), 10 * min(values))
    low, high = math.log(low * 0.95), math.log(high * 1.05)

    def place(i, t):
        x = left + (right - left) * (i + 0.5) / len(times)
        y = bottom - (bottom - top) * (min(math.log(t), high) - low) / (high - low)
        return x, y

    parts, best, line = [], None, []
    for value in _ticks(math.exp(low), math.exp(high)):
        y = place(0, value)[1]
        parts.append(
            f'<path d="M{left} {y:.1f}H{right}" class=grid />'
            f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{duration(value)}</text>'
        )
    for i, t in enumerate(times):
        if t is None:
            x = place(i, math.exp(low))[0]
            parts.append(f'<path d="M{x - 3:.1f} {bottom - 3}l6 6m0 -6l-6 6" class=failed />')
            continue
        x, y = place(i, t)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" class=dot />')
        if best is None or t < best:
            if best is not None:
                line.append((x, place(i, best)[1]))
            best = t
        line.append((x, place(i, best)[1]))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
    parts.append(f'<polyline points="{points}" class=best />')
    if default:
        y = place(0, default)[1]
        parts.append(
            f'<path d="M{left} {y:.1f}H{right}" class=default />'
            f'<text class=on x="{right - 4}" y="{y - 5:.1f}" text-anchor="end">default</text>'
        )
    parts.append(
        f'<text x="{(left + right) / 2}" y="{height - 8}" text-anchor="middle">'
        f"{len(times)} trials (crosses: failures; line: best so far)</text>"
    )
    svg = f'<svg viewBox="0 0 {width} {height}" role="img">{"".join(parts)}</svg>'
    return f"<div class=wide>{svg}</div>"


def _task(task, database):
    workload = database.commit_workload(task.ctx.mod)
    outlines = database._outlines(workload, task.ctx.target)
    times = [secs for secs, _, _, _ in outlines]
    parts = [
        f"<h2>{html.escape(str(task.ctx.task_name))}</h2>",
        f"<p class=note>{html.escape(str(task.ctx.target))}</p>",
        _curve(times, task.default_secs),
    ]
    reasons = {}
    for _, error, _, _ in outlines:
        if error is not None:
            reason = str(error).strip().splitlines()[0]
            reasons[reason] = reasons.get(reason, 0) + 1
    if reasons:
        rows = sorted(reasons.items(), key=lambda item: -item[1])[:20]
        parts.append("<h3>Failures</h3>" + _table(("reason", "count"), rows))
    top = database.get_top_k(workload, 5)
    if top:
        parts.append(
            "<h3>Fastest</h3>"
            + _table(
                ("rank", "time", "decisions"),
                [
                    (i + 1, duration(mean(r.run_secs)), _decisions(r.trace))
                    for i, r in enumerate(top)
                ],
                "text",
            )
        )
        after = _scheduled(top[0], task.ctx.target)
        parts.append(
            "<h3>Best schedule</h3><div class=two>"
            f"<div>before<pre>{html.escape(workload.mod.script())}</pre></div>"
            f"<div>after<pre>{html.escape(after.script())}</pre></div></div>"
            f"<details><summary>trace</summary><pre>{html.escape(str(top[0].trace))}</pre></details>"
        )
    return "".join(parts)


def _scheduled(record, target):
    """The program of a record; for the default schedule, what the default rules make of it."""
    mod = record.as_measure_candidate().sch.mod
    if len(record.trace.insts) > 0:
        return mod
    mod = tvm.tir.transform.BindTarget(tvm.target.Target(target, target))(mod)
    mod = tvm.tir.transform.DefaultSchedule()(mod)
    return tvm.IRModule({v: f.without_attr("target") for v, f in mod.functions.items()})


def _decisions(trace):
    if len(trace.insts) == 0:
        return "the default schedule"
    texts = []
    for inst in trace.insts:
        decision = trace.decisions.get(inst) if hasattr(trace.decisions, "get") else None
        if decision is None:
            continue
        if str(inst.kind.name) == "SampleCategorical":
            decision = inst.attrs[0][int(decision)]
        texts.append("x".join(map(str, decision)) if hasattr(decision, "__len__") else decision)
    return ", ".join(map(str, texts))[:160]


def write_report(path, tasks, database, profiler=None):
    """Writes the report of a run; the file appears whole or not at all."""
    parts = [_table(HEAD[:-1], [row(t)[:-1] for t in tasks])]
    for task in tasks:
        try:
            parts.append(_task(task, database))
        except NotImplementedError as error:  # a database that cannot list its records
            parts.append(f"<p class=note>{html.escape(str(error))}</p>")
    if profiler is not None:
        total = max(profiler.get()["Total"], 1e-12)
        rows = [
            (n, f"{s:.3f} s", f"{100 * s / total:.1f} %")
            for n, s in sorted(profiler.get().items(), key=lambda item: -item[1])
        ]
        parts.append("<h2>Time spent</h2>" + _table(("part", "time", "share"), rows))
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>Tuning report</title><style>{_STYLE}</style><h1>Tuning report</h1>"
        f"<p class=note>version {tvm.__version__}</p>{''.join(parts)}</html>\n"
    )
    with written_whole(path) as file:
        file.write(text)
