# SPDX-License-Identifier: Apache-2.0
"""Calls of every operator, from the operator database: what is printed parses back to the call."""

import contextlib

import pytest
import tvm
from tvm import relax
from tvm.error import TVMError
from tvm.script import from_source

from tests.relax.op.database import ENTRIES, make_call


def calls(entry):
    """All calls of an entry, and the parameters of a function around each."""
    for case in entry.cases:
        for variant in ("static", "symbolic") if case.symbolic else ("static",):
            with contextlib.suppress(TVMError):  # refused: that is for tests of the operator
                yield make_call(entry, case, variant)[:2]
    for make, _ in entry.calls:
        call = make()
        yield call, list(relax.analysis.free_vars(call))


def round_trips(entry):
    """How many calls were printed and parsed back, each to an equal one."""
    count = 0
    for call, params in calls(entry):
        builder = relax.BlockBuilder()
        with builder.function("main", params):
            builder.emit_func_output(builder.emit(call))
        func = builder.get()["main"]
        text = func.script(show_meta=True)
        again = from_source(text, check_well_formed=False)
        tvm.ir.assert_structural_equal(again, func, map_free_vars=True)
        assert again.script(show_meta=True) == text
        count += 1
    return count


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_operator(entry):
    assert round_trips(entry)
