# SPDX-License-Identifier: Apache-2.0
"""enter_postproc: what follows in the trace can be left out."""

from tvm import tir

from tests.schedule.checking import apply
from tests.schedule.programs import elementwise


def test_what_follows_is_left_out_on_request():
    def primitives(sch):
        i, j = sch.get_loops("B")
        sch.parallel(i)
        sch.enter_postproc()
        sch.vectorize(j)

    sch = apply(elementwise, primitives)
    kinds = {}
    for remove in (False, True):
        again = tir.Schedule(elementwise)
        sch.trace.apply_to_schedule(again, remove_postproc=remove)
        kinds[remove] = [again.get(x).kind for x in again.get_loops("B")]
    assert kinds[False] == [tir.ForKind.PARALLEL, tir.ForKind.VECTORIZED]
    assert kinds[True] == [tir.ForKind.PARALLEL, tir.ForKind.SERIAL]
