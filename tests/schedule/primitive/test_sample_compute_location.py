# SPDX-License-Identifier: Apache-2.0
"""sample_compute_location: a place for compute_at."""

import pytest
from tvm import tir

from tests.schedule.checking import apply
from tests.schedule.programs import two_stages


@pytest.mark.parametrize("decision, blocks", [(-1, ["B", "C"]), (0, ["B", "C"]), (-2, ["C"])])
def test_every_decision_can_be_followed(decision, blocks):
    sch = apply(
        two_stages,
        lambda s: s.compute_at("B", s.sample_compute_location("B", decision=decision)),
    )
    assert [str(sch.get(b).name_hint) for b in sch.get_child_blocks("root")] == blocks
    together = sch.get(sch.get_loops(blocks[0])[0]).same_as(sch.get(sch.get_loops("C")[0]))
    assert together == (decision != -1)


def test_draws_are_among_the_places_that_work():
    drawn = set()
    for seed in range(1, 40):
        sch = tir.Schedule(two_stages, seed=seed)
        sch.compute_at("B", sch.sample_compute_location("B"))
        drawn.add(int(list(sch.trace.decisions.values())[0]))
    assert drawn == {-2, -1, 0, 1}


def test_decisions_beyond_the_loops_are_the_innermost_place():
    """As a trace of a program with more loops has them."""
    sch = tir.Schedule(two_stages)
    loop = sch.sample_compute_location("B", decision=7)
    assert sch.get(loop).same_as(sch.get(sch.get_loops("C")[-1]))
    assert [int(d) for d in sch.trace.decisions.values()] == [1]
