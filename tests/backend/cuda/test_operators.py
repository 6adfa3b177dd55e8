# SPDX-License-Identifier: Apache-2.0
"""Every operator becomes kernels: nothing that nobody scheduled reaches VerifyMemory."""

import pytest
import tvm
from tvm import tir

from tests.backend.cuda.test_codegen import needs_nvrtc, text_only  # noqa: F401
from tests.relax.legalize.test_database import CASES, legalized

# The first case of each, and of them what is sorted, scanned or scattered: loops in order.
FIRST = list({entry.name: (entry, case) for entry, case in reversed(CASES)}.values())
IN_ORDER = ("sort", "argsort", "topk", "cumsum", "cumprod", "scatter_elements", "scatter_nd",
            "index_put", "bucketize", "vision.all_class_non_max_suppression")  # fmt: skip


def kernels(entry, case, variant="static", arch="sm_80"):
    """The kernels that an operator's functions become; none where it computes nothing."""
    mod, _ = legalized(entry, case, variant)
    target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="c")
    for var, func in mod.functions.items():
        if isinstance(func, tir.PrimFunc):
            named = func.with_attr("global_symbol", var.name_hint)
            yield tvm.compile(named, target).imports


def check(entry, case, variant="static"):
    for imported in kernels(entry, case, variant):
        assert imported and "__global__" in imported[0].inspect_source()


def ids(cases):
    return [entry.name for entry, _ in cases]


@pytest.mark.parametrize("entry, case", FIRST, ids=ids(FIRST))
def test_operators_become_kernels(entry, case, text_only):  # noqa: F811
    check(entry, case)


SOME = [(entry, case) for entry, case in FIRST if entry.name in IN_ORDER]


@needs_nvrtc
@pytest.mark.parametrize("entry, case", SOME, ids=ids(SOME))
def test_loops_in_order_compile(entry, case):
    check(entry, case)
