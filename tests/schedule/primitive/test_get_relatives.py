# SPDX-License-Identifier: Apache-2.0
"""get_child_blocks, get_producers, get_consumers, get_output_blocks: blocks by how they relate."""

import pytest
from tvm import tir

from tests.schedule.programs import two_stages


def test_relations():
    sch = tir.Schedule(two_stages)

    def names(blocks):
        return [sch.get(b).name_hint for b in blocks]

    assert names(sch.get_child_blocks(sch.get_block("root"))) == ["B", "C"]
    assert names(sch.get_child_blocks(sch.get_loops("C")[0])) == ["C"]
    assert names(sch.get_consumers("B")) == ["C"] and names(sch.get_producers("B")) == []
    assert names(sch.get_producers("C")) == ["B"] and names(sch.get_consumers("C")) == []
    assert names(sch.get_output_blocks("root")) == ["C"]
    with pytest.raises(tir.ScheduleError, match="got a root block"):
        sch.get_producers("root")


def test_output_blocks_are_found_inside_of_others():
    sch = tir.Schedule(two_stages)
    sch.blockize(sch.get_loops("C")[1])
    names = [str(sch.get(b).name_hint) for b in sch.get_output_blocks("root")]
    assert names == ["C_o", "C"]
