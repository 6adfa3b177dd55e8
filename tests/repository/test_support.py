# SPDX-License-Identifier: Apache-2.0
"""`tvm.support`: facts about the build and the machine."""

import json
import subprocess
import sys

import tvm


def test_libinfo_matches_the_package():
    info = tvm.support.libinfo()
    assert info["TVM_VERSION"] == tvm.__version__
    assert info["CXX_COMPILER"] and info["BUILD_TYPE"]


def test_describe_prints_text(capsys):
    tvm.support.describe()
    text = capsys.readouterr().out
    assert f"tvm version: {tvm.__version__}" in text
    assert "apache-tvm-ffi: 0.1." in text
    assert f"threads: {tvm.runtime.NumThreads()}" in text


def test_describe_as_json_from_the_command_line():
    command = [sys.executable, "-m", "tvm.support", "--json"]
    facts = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert facts["host"]["cpus"] >= 1
    assert facts["build"]["TVM_VERSION"] == tvm.__version__


def test_command_line_rejects_unknown_options():
    command = [sys.executable, "-m", "tvm.support", "--yaml"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode != 0
    assert "usage: python -m tvm.support [--json]; got --yaml" in result.stderr
