# SPDX-License-Identifier: Apache-2.0
"""A pass is tested by the smallest program before and the whole program after."""

import textwrap

from tvm import ir, relax
from tvm.script import from_source


def module(*parts):
    """A module of functions as they are written in a script."""
    body = "\n".join(textwrap.dedent(part) for part in parts)
    return from_source("@I.ir_module\nclass Module:\n" + textwrap.indent(body, "    "))


def check(run, before, after, *shared):
    """The pass makes `after` of `before`, each with the functions in `shared`; the result is well
    formed."""
    result = run(module(*shared, before))
    ir.assert_structural_equal(result, module(*shared, after))
    assert relax.analysis.well_formed(result)
    return result
