# SPDX-License-Identifier: Apache-2.0
"""A part of the node tests of the onnx package; `python -m tests.frontend.onnx` runs all."""

import random

import pytest

from .node_cases import cases, complaint, is_expected, operator_of, reason


def sample():
    """One case of each operator, and some more; the same every time."""
    rng = random.Random(0)
    by_operator = {}
    for name, case in cases().items():
        if not name.endswith("_expanded") and "/" not in name:
            by_operator.setdefault(operator_of(case), []).append(name)
    chosen = {rng.choice(names) for names in by_operator.values()}
    return sorted(chosen | set(rng.sample(sorted(cases()), 40)))


@pytest.mark.parametrize("name", sample())
def test_node(name):
    said = complaint(cases()[name])
    assert is_expected("static", name, said), said or f"passes, but: {reason('static', name)}"
