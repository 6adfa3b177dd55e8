# SPDX-License-Identifier: Apache-2.0
"""set_scope: the memory that a buffer is in."""

import pytest

from tests.schedule.checking import apply, refused
from tests.schedule.programs import two_stages


@pytest.mark.parametrize("buffer", [0, "B"])
def test_every_use_has_the_scope(buffer):
    sch = apply(two_stages, lambda s: s.set_scope("B", buffer, "shared"))
    (allocated,) = sch.get(sch.get_block("root")).alloc_buffers
    assert (allocated.name, allocated.scope()) == ("B_shared", "shared")
    assert sch.get(sch.get_block("B")).writes[0].buffer.same_as(allocated)
    assert sch.get(sch.get_block("C")).reads[0].buffer.same_as(allocated)


def test_the_scope_it_has_changes_nothing():
    apply(two_stages, lambda s: s.set_scope("B", 0, "global"), two_stages)


def test_parameters_stay_where_they_are():
    refused(two_stages, lambda s: s.set_scope("C", 0, "shared"), "program allocates, got C")
