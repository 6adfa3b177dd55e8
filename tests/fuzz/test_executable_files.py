# SPDX-License-Identifier: Apache-2.0
"""A sample of mutated executables of a compiled model."""

from .executable_files import check, run, seeds


def test_executables_run_as_they_are():
    assert [run(data, kernels) for data, kernels in seeds()] == ["ran", "ran"]


def test_mutated_executables_fail_or_run():
    outcomes = []
    assert [c for c in (check(seed, outcomes) for seed in range(1500)) if c] == []
    for outcome in ("refused", "failed", "ran"):  # else little was tried
        assert outcomes.count(outcome) > 50


def test_types_that_do_not_exist_are_refused():
    float32 = bytes((2, 32, 1, 0))
    for data, kernels in seeds():
        places = [i for i in range(len(data)) if data.startswith(float32, i)]
        changed = (data[:i] + bytes((99, 0)) + data[i + 2 :] for i in places)
        outcomes = [run(file, kernels) for file in changed]
        assert outcomes.count("refused") >= 2  # of a tensor, and of what is checked
