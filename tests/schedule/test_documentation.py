# SPDX-License-Identifier: Apache-2.0
"""The examples of the registrations run, keep results, replay; docs/schedule.md shows them."""

import importlib.util
import inspect
import pathlib

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T

from .checking import apply

_path = pathlib.Path(__file__).parents[2] / "scripts" / "schedule_page.py"
_spec = importlib.util.spec_from_file_location("schedule_page", _path)
schedule_page = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(schedule_page)
EXAMPLES = {method: rest for method, *rest in schedule_page.examples()}
# What the interpreter does not run, or what changes results by its nature.
NOT_RUN = {"unsafe_set_dtype", "tensorize"}


@pytest.mark.parametrize("method", EXAMPLES)
def test_example(method):
    _, source, calls = EXAMPLES[method]

    def primitives(sch):
        exec(calls, {"sch": sch, "tvm": tvm, "tir": tir, "T": T})

    sch = apply(schedule_page.parse(source), primitives, run=method not in NOT_RUN)
    called = [inst.kind.name.lower() for inst in sch.trace.insts]
    assert method.replace("_", "") in called


@pytest.mark.parametrize("method", EXAMPLES)
def test_method_is_documented(method):
    function = getattr(tir.Schedule, method)
    assert function.__doc__ == EXAMPLES[method][0]
    assert "self" in inspect.signature(function).parameters


def test_page():
    assert schedule_page.PAGE.read_text(encoding="utf-8") == schedule_page.page(), (
        "docs/schedule.md is not what scripts/schedule_page.py writes"
    )
