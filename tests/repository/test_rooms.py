# SPDX-License-Identifier: Apache-2.0
"""Given a source, its tests are found by name: tests/ mirrors src/."""

import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# A pass or primitive has a test file of its name.
ROOMS = {
    "src/tir/transform": "tests/tir/transform",
    "src/schedule/primitive": "tests/schedule/primitive",
}
# Sources that define none: their tests are those of what they serve.
PARTS = {
    "src/tir/transform": {
        "config",  # names of options, tests/tir/test_pass_list.py
        "packed_arguments",  # of make_packed_api
    },
    "src/schedule/primitive": {
        "cache",  # of cache_read and cache_write
        "layout",  # of transform_layout and reindex
        "move",  # of compute_at and reverse_compute_at
    },
}


@pytest.mark.parametrize("source, tests", ROOMS.items())
def test_every_source_has_a_test_of_its_name(source, tests):
    sources = {path.stem for path in (ROOT / source).glob("*.cc")}
    assert PARTS[source] <= sources, "remove from PARTS what is gone"
    without = {name for name in sources if not (ROOT / tests / f"test_{name}.py").exists()}
    assert sorted(without - PARTS[source]) == [], f"expected {tests}/test_<name>.py for each"
    assert sorted(PARTS[source] - without) == [], "remove from PARTS what has tests"
