# SPDX-License-Identifier: Apache-2.0
"""annotate_buffer_access and unsafe_hide_buffer_access."""

from tests.schedule.checking import apply, refused
from tests.schedule.programs import elementwise


def regions(sch, what):
    return [
        (str(r.buffer.name), [(str(x.min), str(x.extent)) for x in r.region])
        for r in getattr(sch.get(sch.get_block("B")), what)
    ]


def test_annotated_regions_are_listed():
    def primitives(sch):
        sch.annotate_buffer_access("B", 0, "read", lambda vi, vj: [vi, (0, 8)])
        sch.annotate_buffer_access("B", 0, "write", lambda vi, vj: [(vi, vi + 1), (vj, vj + 1)])
        sch.annotate_buffer_access("B", 0, "read", lambda vi, vj: [(vi, vi + 1), (0, 8)])

    sch = apply(elementwise, primitives)
    assert regions(sch, "reads") == [("A", [("vi", "1"), ("0", "8")])]
    assert regions(sch, "writes") == [("B", [("vi", "1"), ("vj", "1")])]
    notes = sch.get(sch.get_block("B")).annotations
    for key in ("explicit_read_region", "explicit_write_region"):
        assert [int(i) for i in notes[key]] == [0]


def test_hidden_buffers_are_gone():
    sch = apply(elementwise, lambda s: s.unsafe_hide_buffer_access("B", "read", [0]), run=False)
    assert regions(sch, "reads") == [] and len(regions(sch, "writes")) == 1


def test_refusals():
    refused(
        elementwise,
        lambda s: s.unsafe_hide_buffer_access("B", "reads", [0]),
        'expected "read" or "write" as buf_type, got "reads"',
    )
    refused(
        elementwise,
        lambda s: s.annotate_buffer_access("B", 1, "read", lambda vi, vj: [(0, 16), (0, 8)]),
        r"expected the index of a buffer in \[0, 1\), got 1",
    )
    refused(
        elementwise,
        lambda s: s.annotate_buffer_access("B", 0, "read", lambda vi, vj: [(0, 16)]),
        r"2 pairs \(begin, end\), got 2 iterators and 2 values",
    )
