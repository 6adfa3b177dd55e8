# SPDX-License-Identifier: Apache-2.0
"""loop_partition: a loop becomes loops over parts of its range, one after the other."""

from tests.schedule.checking import apply, refused
from tests.schedule.programs import dynamic


def test_partition_by_sizes():
    """Parts whose lengths depend on sizes may be empty."""

    def primitives(sch):
        i, _ = sch.get_loops("B")
        extent = sch.get(i).extent
        first, _ = sch.loop_partition(i, [extent // 4 * 4, None])
        _, inner = sch.split(first, [None, 4])
        sch.vectorize(inner)

    for n in (0, 3, 4, 11):
        sch = apply(dynamic, primitives, sizes={"n": n})
    assert "T.where" not in sch.mod.script()


def test_refuse_partition_that_may_be_longer():
    def primitives(sch):
        i, _ = sch.get_loops("B")
        sch.loop_partition(i, [sch.get(i).extent + 1, None])

    refused(dynamic, primitives, "expected factors with a sum below n, got n \\+ 1")
    refused(
        dynamic,
        lambda s: s.loop_partition(s.get_loops("B")[0], [s.get(s.get_loops("B")[0]).extent - 4]),
        "expected positive factors, got n - 4",
    )
