# SPDX-License-Identifier: Apache-2.0
"""Numbers beyond 32 bits are used as they are, or refused."""

import pytest
from tvm import tir

from .programs import two_stages as add


def split(*factors):
    def call(sch):
        sch.split(sch.get_loops("B")[0], list(factors))

    return call


REFUSED = {
    "one factor": (split(None, 1 << 32), "expected factors that fit int32, got 4294967296"),
    "one too large": (split(None, 1 << 31), "expected factors that fit int32, got 2147483648"),
    "a product": (
        split(1 << 20, 1 << 20),
        "a product that int32 can hold, got 1048576 \\* 1048576",
    ),
    "a partition": (
        lambda sch: sch.loop_partition(sch.get_loops("B")[0], [1 << 32, None]),
        "expected factors that fit int32",
    ),
    "alignment": (
        lambda sch: sch.storage_align("B", 0, 0, 1 << 40, 1),
        "expected a factor of 32 bits, got 1099511627776",
    ),
    "offset": (
        lambda sch: sch.storage_align("B", 0, 0, 8, -(1 << 40)),
        "expected an offset of 32 bits",
    ),
    "padding": (
        lambda sch: sch.pad_einsum("B", [(1 << 31) - 1, 1]),
        "expected paddings that keep the extents in int32",
    ),
}


@pytest.mark.parametrize("call, text", REFUSED.values(), ids=REFUSED)
def test_refused(call, text):
    sch = tir.Schedule(add)
    with pytest.raises(tir.ScheduleError, match=text):
        call(sch)


def test_largest_numbers_that_fit():
    sch = tir.Schedule(add)
    sch.split(sch.get_loops("B")[0], [None, (1 << 31) - 1])
    sch = tir.Schedule(add)
    sch.storage_align("B", 0, 0, (1 << 31) - 1, 5)
    lowered = tir.transform.CompactBufferAllocation()(sch.mod)["main"]
    block = next(b for b in _blocks(lowered) if len(b.alloc_buffers))
    assert [int(s) for s in block.alloc_buffers[0].strides] == [(1 << 31) + 4, 1]
    assert str(block.alloc_buffers[0].strides[0].dtype) == "int64"


def _blocks(func):
    found = []
    tir.stmt_functor.post_order_visit(
        func.body, lambda n: found.append(n) if isinstance(n, tir.Block) else None
    )
    return found
