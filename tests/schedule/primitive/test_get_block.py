# SPDX-License-Identifier: Apache-2.0
"""Blocks by name."""

import pytest
from tvm import tir
from tvm.script import tir as T

from tests.schedule.programs import two_stages


def test_unknown_blocks():
    sch = tir.Schedule(two_stages)
    with pytest.raises(tir.ScheduleError, match="with the name: roof, in 'main', did you"):
        sch.get_block("roof")

    @T.prim_func
    def twice(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = 1.0
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = 2.0

    with pytest.raises(tir.ScheduleError, match="expected one block named 'A', got 2") as error:
        tir.Schedule(twice).get_block("A")
    assert str(error.value).count("^^^") >= 2
