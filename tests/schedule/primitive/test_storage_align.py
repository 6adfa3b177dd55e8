# SPDX-License-Identifier: Apache-2.0
"""storage_align: padding between the rows of a buffer."""

import pytest
from tvm import tir

from tests.schedule.checking import apply, refused
from tests.schedule.programs import two_stages


@pytest.mark.parametrize("axis", [0, -2])
def test_rows_get_the_stride(axis):
    sch = apply(two_stages, lambda s: s.storage_align("B", 0, axis, factor=32, offset=5))
    compact = tir.transform.CompactBufferAllocation()(sch.mod)["main"]
    (buffer,) = compact.body.block.alloc_buffers
    assert [int(s) for s in buffer.strides] == [32 + 5, 1]


def test_the_last_one_counts():
    def primitives(sch):
        sch.storage_align("B", 0, 0, 32, 5)
        sch.storage_align("B", 0, 0, 16, 2)

    sch = apply(two_stages, primitives)
    (entry,) = sch.get(sch.get_block("B")).annotations["buffer_dim_align"]
    assert [int(x) for x in entry] == [0, 0, 16, 2]


def test_refusals():
    refused(two_stages, lambda s: s.storage_align("B", 0, 2, 8, 0), r"axis in \[-2, 2\)")
    refused(two_stages, lambda s: s.storage_align("B", 0, 0, 0, 0), "a positive factor, got 0")
    refused(two_stages, lambda s: s.storage_align("C", 0, 0, 8, 0), "program allocates, got C")
