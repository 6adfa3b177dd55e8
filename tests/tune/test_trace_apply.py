# SPDX-License-Identifier: Apache-2.0
"""Schedules of a product for products with something before and after."""

import numpy as np
import pytest
import tvm
from tvm import meta_schedule as ms
from tvm import te, tir
from tvm.meta_schedule.trace_apply import schedule_using_anchor_trace

from tests.tune import programs

TARGET = tvm.target.Target("llvm -num-cores=2")
N = 64


def product(before=False, after=False):
    a, b = te.placeholder((N, N), name="A"), te.placeholder((N, N), name="B")
    left = te.compute((N, N), lambda i, j: a[i, j] * 2.0, name="twice") if before else a
    r = te.reduce_axis((0, N), name="r")
    c = te.compute((N, N), lambda i, j: te.sum(left[i, r] * b[r, j], axis=r), name="C")
    if after:
        c = te.compute((N, N), lambda i, j: te.max(c[i, j] - 16.0, 0.0), name="relu")
    return te.create_prim_func([a, b, c])


def traces(count=6):
    ctx = ms.TuneContext(
        programs.matmul(N, N, N), target=TARGET, space_generator="post-order-apply",
        search_strategy="replay-trace", rand_state=3,
    )  # fmt: skip
    ctx.pre_tuning(count, count)
    found = [c.sch.trace for c in ctx.generate_measure_candidates()]
    return [t for t in found if len(t.insts)]


def kinds_of_loops(sch):
    name = "C_update" if 'T.block("C_update")' in sch.mod.script() else "C"
    return [sch.get(loop).kind for loop in sch.get_loops(name)]


@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_a_trace_serves_what_surrounds_the_product(before, after):
    rng = np.random.default_rng(0)
    a, b = (rng.random((N, N), dtype="float32") for _ in range(2))
    want = (2 * a if before else a) @ b
    want = np.maximum(want - 16, 0) if after else want
    for trace in traces():
        sch = tir.Schedule(product(before, after))
        schedule_using_anchor_trace(sch, trace, TARGET)
        got = np.zeros((N, N), "float32")
        tvm.compile(sch.mod, TARGET)(a, b, got)
        # Sums of about 16 are rounded before 16 is taken away.
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=16e-6)
        alone = tir.Schedule(product())
        trace.apply_to_schedule(alone, remove_postproc=False)
        assert kinds_of_loops(sch) == kinds_of_loops(alone)


def test_a_module_without_anchor_is_refused():
    nothing = tir.Schedule(te.create_prim_func([]))
    with pytest.raises(ValueError, match="expected a module with an anchor block"):
        schedule_using_anchor_trace(nothing, traces()[0], TARGET)
