# SPDX-License-Identifier: Apache-2.0
"""Checks of schedules for tests."""

import json

import tvm

from .schedule import Schedule
from .trace import Trace


def assert_structural_equal_ignore_global_symbol(func1, func2, *args, **kwargs):
    """Compares functions without their names."""
    tvm.ir.assert_structural_equal(
        func1.without_attr("global_symbol"), func2.without_attr("global_symbol"), *args, **kwargs
    )


def verify_trace_roundtrip(sch, mod, *, debug_mask="all", text_format=("python", "json")):
    """Replays the trace of `sch` on `mod` from its texts; each time the program must be the same.

    Returns the schedule of the last replay.
    """
    formats = [text_format] if isinstance(text_format, str) else text_format
    for text in formats:
        again = Schedule(mod, debug_mask=debug_mask)
        if text == "json":
            Trace.apply_json_to_schedule(json.loads(_to_json(sch.trace.as_json())), again)
        elif text == "python":
            exec("\n".join(sch.trace.as_python()), {"sch": again, "tvm": tvm, "T": _script()})
        else:
            raise ValueError(f"text_format: expected 'python' or 'json', got '{text}'")
        tvm.ir.assert_structural_equal(sch.mod, again.mod)
    return again


def _script():
    from tvm.script import tir

    return tir


def _to_json(value):
    """As text, so that nothing but plain data passes."""
    return json.dumps(value, default=lambda v: dict(v) if hasattr(v, "items") else list(v))
