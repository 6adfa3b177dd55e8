# SPDX-License-Identifier: Apache-2.0
"""The pool from Python: where its threads may run."""

import os
import subprocess
import sys

import pytest
import tvm

# In a process of its own: threads of other tests may be bound to CPUs.
PROGRAM = """
import os, time
import numpy as np, tvm
from tvm import te

a = te.placeholder((64, 4096), name="a")
b = te.compute((64, 4096), lambda i, j: te.exp(a[i, j]), name="b")
module = tvm.build(te.create_prim_func([a, b]), target="llvm -num-cores=2")
x = tvm.runtime.tensor(np.zeros((64, 4096), "float32"))
y = tvm.runtime.empty((64, 4096), "float32")
allowed = os.sched_getaffinity(0)


def restricted():
    return [t for t in os.listdir("/proc/self/task") if os.sched_getaffinity(int(t)) != allowed]


for _ in range(200):
    module(x, y)
    time.sleep(0.0005)
# One that came too late for the last call is free again when it notices.
deadline = time.monotonic() + 10
while restricted() and time.monotonic() < deadline:
    time.sleep(0.01)
assert not restricted(), restricted()
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_workers_keep_their_cpus():
    """A worker that is sent to another CPU may go anywhere again."""
    env = {**os.environ, "PYTHONPATH": os.path.dirname(tvm.__path__[0]), "TVM_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
