# SPDX-License-Identifier: Apache-2.0
"""dlight.benchmark: functions measured over samples of their sizes"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tvm
from tvm.dlight import benchmark as bench
from tvm.dlight.benchmark import utils
from tvm.meta_schedule.runner import EvaluatorConfig
from tvm.script import tir as T

from .programs import elementwise

FAST = EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0)


@T.prim_func
def scaled(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8))
    B = T.match_buffer(b, (n * 2, 8), "float16")
    for i, j in T.grid(n, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi * 2, vj] = T.cast(A[vi, vj] * 2.0, "float16")


def test_info():
    (first, second), variables = bench.extract_func_info_from_prim_func(scaled)
    assert variables == {"n": "int32"} and first[1] == "float32" and second[1] == "float16"
    assert utils.populuate_input_shape([first, second], {"n": 3}) == [
        ((3, 8), "float32"), ((6, 8), "float16"),
    ]  # fmt: skip
    assert utils.populuate_input_shape([(("n", 4), "int8")], {"n": 5}) == [((5, 4), "int8")]
    with pytest.raises(ValueError, match="expected a size for n in dym_var_sample, got"):
        utils.populuate_input_shape([first], {"m": 3})
    assert utils.dym_var_sample_str({"n": 3, "m": 4}) == "n=3, m=4"
    assert set(utils.default_dym_var_sample_func({"n": "int32"})) == {"n"}
    assert utils.get_func_name_from_gv(tvm.ir.GlobalVar("f")) == "f"


def test_benchmark():
    shapes, median, std = bench.benchmark(
        scaled, dym_var_sample={"n": 4}, target="llvm", evaluator_config=FAST
    )
    assert shapes == [((4, 8), "float32"), ((8, 8), "float16")]
    assert median > 0 and std >= 0
    with pytest.raises(NotImplementedError, match="expected no rpc_config"):
        bench.benchmark(scaled, dym_var_sample={"n": 4}, rpc_config=object())
    mod = tvm.IRModule({"f": scaled, "g": elementwise})
    with pytest.raises(ValueError, match=r"one of \['f', 'g'\], got h"):
        bench.benchmark(mod, dym_var_sample={}, func_name="h")


def test_caches_are_flushed_on_demand(monkeypatch):
    flushed = []
    measure = tvm.runtime.Module.time_evaluator

    def spy(self, *args, f_preproc="", **kwargs):
        flushed.append(f_preproc)
        return measure(self, *args, f_preproc=f_preproc, **kwargs)

    monkeypatch.setattr(tvm.runtime.Module, "time_evaluator", spy)
    for flush in (False, True):
        config = EvaluatorConfig(1, 1, 0, enable_cpu_cache_flush=flush)
        bench.benchmark(elementwise, dym_var_sample={}, target="llvm", evaluator_config=config)
    assert flushed == ["", "cache_flush_cpu_non_first_arg"]


def test_benchmark_prim_func(capsys):
    sizes = iter([2, 7, 5])
    rows = bench.benchmark_prim_func(
        scaled, dym_var_sample_func=lambda variables: {"n": next(sizes)}, sample_number=3,
        target="llvm", weight=10, prim_func_name="scaled", evaluator_config=FAST, sort_by="Sample",
        desc=False,
    )  # fmt: skip
    assert [row["Sample"] for row in rows] == ["n=2", "n=7", "n=5"]
    assert all(row["WxTime(ms)"] == row["Time(ms)"] * 10 for row in rows)
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["PrimFunc", "InputInfo"] and len(lines) == 3
    assert [line.split("n=")[1][0] for line in lines] == ["2", "5", "7"]
    assert len(bench.benchmark_prim_func(elementwise, evaluator_config=FAST)) == 1
    with pytest.raises(ValueError, match="expected sort_by to be of"):
        utils.print_results(rows, sort_by="Time")


def test_extract(tmp_path):
    """The script that is written runs."""
    text = bench.extract_prim_func(
        "model", "main", "scaled", scaled, sample_number=1, target="llvm"
    )
    (tmp_path / "script.py").write_text(text)
    here = {"PYTHONPATH": str(Path(tvm.__file__).parents[1])}
    run = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env=os.environ | here,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "scaled" in run.stdout and "WxTime(ms)" in run.stdout
