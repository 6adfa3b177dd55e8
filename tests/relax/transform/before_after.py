# SPDX-License-Identifier: Apache-2.0
"""What tests of passes share: a pass turns one module into another, which is well formed."""

from tvm import ir, relax


def check(run, before, expected):
    """`run(before)` is `expected`; a second run changes nothing more."""
    after = run(before)
    ir.assert_structural_equal(after, expected)
    assert relax.analysis.well_formed(after)
    ir.assert_structural_equal(run(after), after)
    return after
