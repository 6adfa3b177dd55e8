# SPDX-License-Identifier: Apache-2.0
"""The table of behaviours that scripts rely on names tests that exist."""

import ast
import pathlib
import re

import pytest

TESTS = pathlib.Path(__file__).parents[1]
LINES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (TESTS / "behaviours.md").read_text().splitlines()
    if re.match(r"\| \d", line)
]


@pytest.mark.parametrize("row", LINES, ids=[line[0] for line in LINES])
def test_row(row):
    _, behaviour, tests = row
    named = re.findall(r"`([^`]+)`", tests)
    # A row without a test says why.
    assert named or re.search("(different|not built)$", behaviour)
    for name in named:
        path, _, function = name.partition("::")
        tree = ast.parse((TESTS / path).read_text())
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert not function or function in functions, f"expected {function} in {path}"


def test_rows_are_numbered_once():
    numbers = [line[0] for line in LINES]
    assert len(set(numbers)) == len(numbers)
