# SPDX-License-Identifier: Apache-2.0
"""A sample of PyTorch's database of operators: results of one call each, and why some have none."""

import random

import pytest

pytest.importorskip("torch")
from .database import failure, operators

# Those among the first 110 drawn that do not pass; the test takes 30 of them.
NOT_YET = {
    "corrcoef": "torch.export refuses it",
    "cov": "torch.export refuses it",
    "equal": "torch.export refuses it",
    "sparse.mm.reduce": "no converter",
    "sparse.sampled_addmm": "no converter",
}


def sample():
    return sorted(random.Random(7).sample(sorted(operators()), 110)[:30])


@pytest.mark.parametrize("name", sample())
def test_results_are_those_of_pytorch(name):
    reason = failure(name, 1)
    assert (reason is not None) == (name in NOT_YET), reason
