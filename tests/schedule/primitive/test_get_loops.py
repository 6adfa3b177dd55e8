# SPDX-License-Identifier: Apache-2.0
"""get_loops: the loops around a block within its scope."""

import pytest
from tvm import tir

from tests.schedule.programs import matmul, nested


def names(sch, block):
    return [str(sch.get(loop).loop_var.name) for loop in sch.get_loops(block)]


def test_from_the_outermost_in():
    sch = tir.Schedule(matmul)
    assert names(sch, "C") == ["i", "j", "k"]
    assert names(sch, sch.get_block("C")) == ["i", "j", "k"]
    assert names(sch, "root") == []


def test_only_those_of_the_scope():
    sch = tir.Schedule(nested)
    blocks = [b.name_hint for b in map(sch.get, sch.get_child_blocks("root"))]
    around = names(sch, blocks[0])
    for child in sch.get_child_blocks(sch.get_block(blocks[0])):
        assert not set(names(sch, child)) & set(around)


def test_a_name_must_be_there():
    with pytest.raises(tir.ScheduleError, match="with the name: D, in 'main'"):
        tir.Schedule(matmul).get_loops("D")
