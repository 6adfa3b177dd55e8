# SPDX-License-Identifier: Apache-2.0
"""The cost of the C++ build: what is measured, and against what it is compared."""

import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("build_cost", ROOT / "scripts/build_cost.py")
build_cost = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build_cost)


def test_sources_of_a_batch(tmp_path):
    batch = tmp_path / "arith_0.cc"
    batch.write_text('#include "arith/linear.cc"\n#include "arith/facts.cc"\n')
    assert build_cost.sources(batch) == [ROOT / "src/arith/linear.cc", ROOT / "src/arith/facts.cc"]
    alone = ROOT / "src/arith/facts.cc"
    assert build_cost.sources(alone) == [alone]


def test_results_are_written_elsewhere():
    command = "cmake -E env A=b ccache c++ -I. -MD -MT a.o -MF a.o.d -o a.o -c a.cc"
    words = build_cost.without_output(command, "x/1.o")
    assert words[words.index("-o") + 1] == "x/1.o" and words[words.index("-MF") + 1] == "x/1.o.d"
    assert "a.o" not in words and words[-1] == "a.cc"


def test_the_sample_depends_on_names_alone():
    units = [pathlib.Path(f"build/batch/tvm/part_{i}.cc") for i in range(600)]
    chosen = [u for u in units if build_cost.is_sampled(u)]
    assert 25 < len(chosen) < 100
    assert [u for u in units[:300] if build_cost.is_sampled(u)] == [
        u for u in chosen if u in units[:300]
    ]


@pytest.mark.parametrize("growth, fails", [(1.0, False), (1.3, False), (1.4, True)])
def test_growth_by_a_third_fails(monkeypatch, capsys, growth, fails):
    figure = build_cost.RECORDED * growth
    monkeypatch.setattr(build_cost, "measure", lambda *_: (figure * 5, 1000, 5.0, 7))
    monkeypatch.setattr(build_cost.sys, "argv", ["build_cost.py", "build"])
    if fails:
        with pytest.raises(SystemExit, match="the C\\+\\+ build became slower"):
            build_cost.main()
    else:
        build_cost.main()
    assert "7 units, 1000 lines" in capsys.readouterr().out
