# SPDX-License-Identifier: Apache-2.0
"""Numbers behind the default rules: all are found, can be replaced, and are compared."""

import re
import subprocess

import pytest
import tvm

from bench import costs

TEXT = (costs.ROOT / costs.HEADER).read_text()


def test_every_number_is_found():
    names = re.findall(r"\bk[A-Z]\w*(?= =)", TEXT)
    found = costs.numbers(TEXT)
    assert sorted(found) == sorted(names) and len(names) > 40
    assert found["kParallel"] == 65536 and found["kIdleTiles"] == 1.05


def test_numbers_are_read_from_the_environment(tmp_path):
    values = "kParallel, kIdle, kIdleTiles, kInterleave"
    body = "".join(f'std::printf("%g ", double({name}));' for name in values.split(", "))
    program = f"#include <cstdio>\n{costs.replaced(TEXT)}\nusing namespace tvm::tir::cost;\n"
    (tmp_path / "a.cc").write_text(program + f"int main() {{ {body} }}\n")
    binary = tmp_path / "a"
    subprocess.run(["c++", "-std=c++20", tmp_path / "a.cc", "-o", binary], check=True)
    changed = {"kIdle": "1.3", "kInterleave": "2"}
    printed = subprocess.run([binary], env=changed, capture_output=True, text=True).stdout
    assert printed.split() == ["65536", "1.3", "1.05", "2"]


@pytest.mark.parametrize("value, half, twice", [(4, 2, 8), (1.5, 1.25, 2), (0.75, 0.875, 0.5)])
def test_what_ratios_tolerate_is_scaled(value, half, twice):
    assert costs.scaled(value, 0.5) == half and costs.scaled(value, 2) == twice


def test_a_cell_names_who_is_off():
    assert costs.cell(0, {}) == "no code differs"
    assert costs.cell(2, {"a": 1.0, "b": 1.02}) == "1.01 (2 of 2)"
    assert costs.cell(1, {"a": 2.0}) == "2.00 (1 of 1); 2.00 a"
    assert costs.cell(9, {"a": 2.0, "b": 0.5, "c": 1}) == "1.00 (3 of 9); 2.00 a; 0.50 b"


def test_operators_are_timed_in_turns(tmp_path):
    base, changed = tmp_path / "base", tmp_path / "changed"
    changed.mkdir()
    base.mkdir()
    i, func = next((i, f) for i, (name, f) in enumerate(costs._programs()) if "relu (1,)" in name)
    tvm.compile(func, "llvm -num-cores=1").export_library(str(changed / f"{i}.so"))
    ((name, ratio),) = costs.timed(base, changed, 1, 3).items()
    assert name == "relu (1,) float32" and 0.1 < ratio < 10
