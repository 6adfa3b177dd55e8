# SPDX-License-Identifier: Apache-2.0
"""Writes docs/schedule.md from the registrations of the primitives: python scripts/schedule_page.py

Each primitive is shown on the example of its registration, before and after.
"""

import inspect
import pathlib
import re
import textwrap

import tvm
from tvm import tir
from tvm.script import tir as T

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "schedule.md"
HEADER = """\
# Schedules

A `Schedule` holds a program and changes it step by step. A primitive either does what it says,
without changing what the program computes, or raises a `ScheduleError` with the reason and the
program, and the schedule stays as it was:
```python
import tvm
from tvm import te, tir
from tvm.script import tir as T

A = te.placeholder((64, 64), name="A")
B = te.placeholder((64, 64), name="B")
k = te.reduce_axis((0, 64), name="k")
C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

sch = tir.Schedule(te.create_prim_func([A, B, C]))
i, j, k = sch.get_loops("C")
j_outer, j_inner = sch.split(j, [None, 8])
sch.reorder(i, j_outer, k, j_inner)
sch.parallel(i)
sch.vectorize(j_inner)
matmul = tvm.compile(sch, target="llvm")

try:
    sch.parallel(k)
except tir.ScheduleError as error:
    assert "the reduction iterator v_k of block C runs over it" in str(error)
```
Blocks and loops are named by random variables, which stay what they are while the program changes
around them. `sch.get(rv)` is the statement one stands for; `sch.mod` the program. `sch.copy()` is
cheap: both schedules share all they have in common.

The trace has every primitive that was applied. It can be replayed on another program, written as
JSON or as Python, and its sampling decisions can be changed:
```python
again = tir.Schedule(te.create_prim_func([A, B, C]))
sch.trace.apply_to_schedule(again, remove_postproc=False)
tvm.ir.assert_structural_equal(sch.mod, again.mod)
assert sch.trace.as_python()[-1] == "sch.vectorize(loop=l5)"
```
`Schedule(mod, debug_mask="all")` checks the tree of blocks and loops after every primitive;
`error_render_level="fast"` leaves the program out of errors. A function that a schedule changed
is left alone by the default rules.

# Primitives

This part is written by `scripts/schedule_page.py` from the registrations in
`src/schedule/primitive`.
"""


def source_of(program):
    """The text of the example's function, with a header if it has only a body."""
    program = program.strip("\n")
    if program.startswith("def "):
        return program
    handles = re.findall(r"T\.match_buffer\((\w+),", program)
    params = ", ".join(f"{name}: T.handle" for name in handles)
    return f"def before({params}):\n" + textwrap.indent(program, "    ")


def examples():
    """(method, documentation, program, calls) of every primitive."""
    for _, method, doc, program, calls in tvm.get_global_func("tir.schedule._examples")():
        yield str(method), str(doc), source_of(str(program)), str(calls).strip("\n")


def parse(source):
    return tvm.script.from_source("@T.prim_func\n" + source, extra_vars={"T": T})


def after(source, calls):
    sch = tir.Schedule(parse(source), debug_mask="all", seed=0)
    exec(calls, {"sch": sch, "tvm": tvm, "tir": tir, "T": T})
    return sch


def section(method, doc, source, calls):
    signature = str(inspect.signature(getattr(tir.Schedule, method))).replace("(self, ", "(")
    before = parse(source)
    sch = after(source, calls)
    changed = not tvm.ir.structural_equal(sch.mod["main"], before)
    text = f"\n## {method}{signature.replace('(self)', '()')}\n{textwrap.fill(doc, 110)}\n"
    text += f"```python\n@T.prim_func\n{source}\n\nsch = tir.Schedule(before)\n{calls}\n```\n"
    if changed:
        body = sch.mod["main"].with_attr("global_symbol", "after").script()
        body = body[body.index("@T.prim_func") :]
        text += f"```\n{body.rstrip()}\n```\n"
    return text


def page():
    return HEADER + "".join(section(*example) for example in examples())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
