# SPDX-License-Identifier: Apache-2.0
"""`tvm.support`: facts about the build and the machine."""

import json
import subprocess
import sys

import pytest
import tvm
from tvm.support import host


def test_libinfo_matches_the_package():
    info = tvm.support.libinfo()
    assert info["TVM_VERSION"] == tvm.__version__
    assert info["CXX_COMPILER"] and info["BUILD_TYPE"]


def test_describe_prints_text(capsys):
    tvm.support.describe()
    text = capsys.readouterr().out
    assert f"tvm version: {tvm.__version__}" in text
    assert "apache-tvm-ffi: 0.1." in text
    assert "cpus:" in text


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


@pytest.mark.parametrize(
    "limits, expected",
    [({}, None), ({"": "max 100000", "a": "150000 100000"}, 1.5), ({"": "50000 100000"}, 0.5)],
)
def test_cpu_limit_is_the_tightest_of_the_groups(tmp_path, limits, expected):
    (tmp_path / "a/b").mkdir(parents=True)
    for folder, text in limits.items():
        (tmp_path / folder / "cpu.max").write_text(text)
    membership = tmp_path / "membership"
    membership.write_text("0::/a/b\n")
    assert host.cpu_limit(str(tmp_path), str(membership)) == expected


def test_cpu_limit_of_version_1(tmp_path):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("200000\n")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    membership = tmp_path / "membership"
    membership.write_text("4:memory:/x\n3:cpu,cpuacct:/\n")
    assert host.cpu_limit(str(tmp_path), str(membership)) == 2.0
