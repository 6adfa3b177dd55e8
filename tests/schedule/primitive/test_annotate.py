# SPDX-License-Identifier: Apache-2.0
"""annotate and unannotate."""

from tests.schedule.checking import apply, refused
from tests.schedule.programs import elementwise


def test_blocks_and_loops():
    def primitives(sch):
        i, _ = sch.get_loops("B")
        sch.annotate(i, "outer", 1)
        sch.annotate("B", "all", {"list": [1, "two", 3.5], "none": []})
        sch.annotate("B", "replaced", 1)
        sch.annotate("B", "replaced", 2)

    sch = apply(elementwise, primitives)
    assert int(sch.get(sch.get_loops("B")[0]).annotations["outer"]) == 1
    notes = sch.get(sch.get_block("B")).annotations
    assert list(notes["all"]["list"]) == [1, "two", 3.5] and int(notes["replaced"]) == 2


def test_what_is_drawn_can_be_an_annotation():
    def primitives(sch):
        sch.annotate("B", "drawn", sch.sample_categorical([4, 8], [0.0, 1.0]))

    sch = apply(elementwise, primitives)
    assert int(sch.get(sch.get_block("B")).annotations["drawn"]) == 8


def test_unannotate():
    def primitives(sch):
        sch.annotate("B", "mark", 1)
        sch.unannotate("B", "mark")

    apply(elementwise, primitives, elementwise)

    def unknown(sch):
        sch.annotate("B", "mark", 1)
        sch.unannotate("B", "marc")

    refused(elementwise, unknown, "got 'marc', did you mean 'mark'")
