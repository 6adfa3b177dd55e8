# SPDX-License-Identifier: Apache-2.0
"""A pass is tested by the smallest program before and the whole program after."""

import textwrap

from tvm import ir, relax
from tvm.script import from_source


def module(*parts):
    """A module of functions as they are written in a script."""
    body = "\n".join(textwrap.dedent(part) for part in parts)
    return from_source("@I.ir_module\nclass Module:\n" + textwrap.indent(body, "    "))


def check(run, before, after, *shared, settles=True):
    """The pass makes `after` of `before`, which are modules, or functions as they are written in a
    script, each with those in `shared`; the result is well formed, and, when the pass settles, a
    second run changes nothing more."""
    before, after = (module(*shared, p) if isinstance(p, str) else p for p in (before, after))
    result = run(before)
    ir.assert_structural_equal(result, after)
    assert relax.analysis.well_formed(result)
    if settles:
        ir.assert_structural_equal(run(result), result)
    return result


INFOS = 'I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0, "global")]})\n'
