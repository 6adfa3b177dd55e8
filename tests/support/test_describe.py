# SPDX-License-Identifier: Apache-2.0
"""Facts about the build and the machine, for people and for bug reports."""

import json
import os
import re
import subprocess
import sys

import tvm
from tvm.support import _cuda_toolkit


def command_line(*arguments):
    command = [sys.executable, "-m", "tvm.support", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_libinfo():
    info = tvm.support.libinfo()
    assert info["TVM_VERSION"] == tvm.__version__
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?|", info["GIT_COMMIT_HASH"])
    assert info["CXX_COMPILER"] and info["BUILD_TYPE"]
    assert re.match(r"0\.1\.\d+", info["TVM_FFI_VERSION"])
    assert all(type(key) is type(value) is str for key, value in info.items())
    switches = [info[name] for name in ("USE_LLVM", "USE_LLD", "BUILD_TESTS")]
    assert set(switches) <= {"ON", "OFF"}


def test_libinfo_tells_the_truth_about_llvm():
    info, has_llvm = tvm.support.libinfo(), tvm._libs.find("tvm_llvm") is not None
    assert (info["USE_LLVM"] == "ON") is has_llvm
    assert info["LLVM_LINK"] == ("static, hidden symbols" if has_llvm else "")
    if has_llvm:
        tvm._libs.load("tvm_llvm")
        version = tvm.get_global_func("backend.llvm.version")()
        assert info["LLVM_VERSION"].startswith(str(version))


def test_libinfo_is_also_a_module():
    from tvm.support.libinfo import libinfo

    assert libinfo is tvm.support.libinfo


def test_describe_prints_text(capsys):
    tvm.support.describe()
    text = capsys.readouterr().out
    for line in (
        f"tvm version: {tvm.__version__}",
        "apache-tvm-ffi: 0.1.",
        "cloudpickle: ",
        f"threads: {tvm.runtime.NumThreads()}",
        f"executable: {sys.executable}",
        "memory gib: ",
        "nvidia driver: ",
        "cuda toolkit: ",
    ):
        assert f"  {line}" in text


def test_describe_as_json(capsys):
    tvm.support.describe(as_json=True)
    facts = json.loads(capsys.readouterr().out)
    assert facts["build"] == tvm.support.libinfo()
    assert facts["host"]["cpus"] >= facts["host"]["cpus_available"] >= 1
    assert isinstance(facts["host"]["cpu_features"], list)
    assert facts["python"]["package"] == os.path.dirname(tvm.__file__)


def test_describe_tells_the_toolkit(capsys, monkeypatch, tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda.h").write_text("#define CUDA_VERSION 12080\n")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    tvm.support.describe()
    assert f"cuda toolkit: 12.8 in {tmp_path}" in capsys.readouterr().out
    monkeypatch.setattr(_cuda_toolkit, "root", lambda: (_ for _ in ()).throw(RuntimeError))
    tvm.support.describe()
    assert "cuda toolkit: -" in capsys.readouterr().out


def test_command_line():
    assert f"tvm version: {tvm.__version__}" in command_line().stdout
    facts = json.loads(command_line("--json").stdout)
    assert facts["build"]["TVM_VERSION"] == tvm.__version__


def test_command_line_rejects_unknown_options():
    result = command_line("--yaml")
    assert result.returncode != 0
    assert "unrecognized arguments: --yaml" in result.stderr
