# SPDX-License-Identifier: Apache-2.0
"""Compiled code is kept on disk between processes, and damage to it does no harm."""

import os
import subprocess
import sys

PROGRAM = """
import numpy as np, tvm
from tvm import te
A = te.placeholder((8,), name="A")
B = te.compute((8,), lambda i: A[i] * 3 + 1, name="B")
f = tvm.compile(te.create_prim_func([A, B]), target="llvm")
a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
f(a, b)
assert (b == a * 3 + 1).all()
"""


def _run(folder, limit="100"):
    env = {**os.environ, "TVM_CACHE_DIR": str(folder), "TVM_CACHE_LIMIT_MB": limit}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return sorted(p for p in folder.rglob("*") if p.is_file())


def test_an_entry_is_written_once_and_used(tmp_path):
    (entry,) = _run(tmp_path)
    written = entry.stat().st_mtime_ns, entry.read_bytes()
    (again,) = _run(tmp_path)
    assert again == entry and again.read_bytes() == written[1]


def test_a_damaged_entry_is_made_anew(tmp_path):
    (entry,) = _run(tmp_path)
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2])
    (again,) = _run(tmp_path)
    assert again.read_bytes() == whole


def test_the_cache_can_be_turned_off(tmp_path):
    assert _run(tmp_path, limit="0") == []
