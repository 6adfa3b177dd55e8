# SPDX-License-Identifier: Apache-2.0
"""What the three libraries need, hide and weigh, and that they are good neighbours in a process."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import tvm
from tvm import _libs


def output(*command):
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def library(name):
    path = _libs.find(name)
    if path is None:
        pytest.skip(f"lib{name} is not built")
    return str(path)


def needed(path):
    return set(re.findall(r"NEEDED.*\[(.*?)(?:\.so.*)?\]", output("readelf", "-d", path)))


SYSTEM = {"libc", "libm", "libgcc_s", "libstdc++", "libpthread", "libdl", "librt"}


@pytest.mark.parametrize(
    "name, ours",
    [
        ("tvm_runtime", {"libtvm_ffi"}),
        ("tvm", {"libtvm_ffi", "libtvm_runtime"}),
        ("tvm_llvm", {"libtvm_ffi", "libtvm_runtime", "libtvm"}),
    ],
)
def test_libraries_need_only_the_system_and_each_other(name, ours):
    extra = needed(library(name)) - ours - SYSTEM
    assert {n for n in extra if not n.startswith("ld-linux")} == set()


def test_runtime_is_small(tmp_path):
    stripped = tmp_path / "stripped.so"
    shutil.copyfile(library("tvm_runtime"), stripped)
    subprocess.run(["strip", stripped], check=True)
    assert stripped.stat().st_size < 2 * 2**20


def test_llvm_is_hidden():
    exported = output("nm", "-D", "--defined-only", library("tvm_llvm")).splitlines()
    names = [line.split(maxsplit=2)[2] for line in exported]
    # Mangled: a function of ours that returns something of LLVM's would read llvm:: first.
    foreign = re.compile(r"^_Z(?:TI|TS|TV|TT|GV)?Z?N?K?(?:4llvm|3lld)")
    assert names and [n for n in names if foreign.match(n)] == []


@pytest.mark.parametrize("order", [["tvm", "torch"], ["torch", "tvm"]], ids="-".join)
def test_import_beside_torch_in_either_order(order, tmp_path):
    pytest.importorskip("torch")
    program = "".join(f"import {name}\n" for name in order)
    program += "x = tvm.runtime.tensor(torch.arange(4).numpy())\n"
    program += "assert torch.from_dlpack(x).tolist() == [0, 1, 2, 3]\n"
    # From another folder: nothing is found by luck.
    env = {**os.environ, "PYTHONPATH": os.path.dirname(tvm.__path__[0])}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=env, check=True)
