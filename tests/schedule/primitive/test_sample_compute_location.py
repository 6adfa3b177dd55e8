# SPDX-License-Identifier: Apache-2.0
"""sample_compute_location: a place for compute_at."""

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T

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


def test_decisions_at_loops_that_the_block_cannot_move_to():
    """What adds to itself stays where it is."""

    @T.prim_func
    def adds(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj]

    sch = tir.Schedule(adds)
    for decision in (0, 1, 5):
        sch.compute_at("B", sch.sample_compute_location("B", decision=decision))
    assert [int(d) for d in sch.trace.decisions.values()] == [-1, -1, -1]
    tvm.ir.assert_structural_equal(sch.mod["main"].body, adds.body)
