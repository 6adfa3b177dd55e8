# SPDX-License-Identifier: Apache-2.0
"""What the tests of primitives share: applying them with every check on, running before and after,
replaying the trace."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.tir.schedule.testing import (
    assert_structural_equal_ignore_global_symbol,
    verify_trace_roundtrip,
)


def arrays(func, sizes=None, seed=0):
    """Random arguments of a function; `sizes` gives symbolic dimensions by name."""
    rng = np.random.default_rng(seed)
    made = []
    for param in func.params:
        if param not in func.buffer_map:
            made.append(sizes[param.name])
            continue
        buffer = func.buffer_map[param]
        shape = [sizes[d.name] if isinstance(d, tir.Var) else int(d) for d in buffer.shape]
        if "float" in str(buffer.dtype):
            made.append(rng.uniform(-1, 1, shape).astype(str(buffer.dtype)))
        else:
            made.append(rng.integers(0, 8, shape).astype(str(buffer.dtype)))
    return made


def same_results(before, after, sizes=None):
    """Both functions write the same in the interpreter."""
    expected, got = arrays(before, sizes), arrays(before, sizes)
    tir.interpret(before)(*expected)
    tir.interpret(after)(*got)
    for a, b in zip(expected, got, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def apply(before, primitives, expected=None, sizes=None, run=True):
    """Applies `primitives(sch)` and checks all that holds of any schedule; returns it."""
    sch = tir.Schedule(before, debug_mask="all", seed=0)
    primitives(sch)
    after = sch.mod["main"]
    tir.analysis.verify_well_formed(after)
    if expected is not None:
        assert_structural_equal_ignore_global_symbol(after, expected)
    verify_trace_roundtrip(sch, before)
    again = tir.Schedule(before, debug_mask="all")
    sch.trace.simplified(remove_postproc=False).apply_to_schedule(again, remove_postproc=False)
    tvm.ir.assert_structural_equal(sch.mod, again.mod)
    if run:
        same_results(before, after, sizes)
    return sch


def refused(before, primitives, match):
    """`primitives(sch)` ends in a ScheduleError with a text that matches; the schedule is as it was
    before the last primitive."""
    sch = tir.Schedule(before, debug_mask="all", seed=0)
    with pytest.raises(tir.ScheduleError, match=match) as error:
        primitives(sch)
    count = len(sch.trace.insts)
    again = tir.Schedule(before)
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    assert len(again.trace.insts) == count
    tvm.ir.assert_structural_equal(sch.mod, again.mod)
    return str(error.value)
