# SPDX-License-Identifier: Apache-2.0
"""The pool from Python: where its threads may run."""

import os
import time

import numpy as np
import pytest
import tvm
from tvm.script import tir as T


@T.prim_func
def work(a: T.Buffer((64, 4096), "float32")):
    for i in T.parallel(64):
        for j in range(4096):
            a[i, j] = T.exp(a[i, j] * T.float32(0.5))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_workers_keep_their_cpus():
    """A worker that is sent to another CPU may go anywhere again."""
    module = tvm.build(work, target="llvm -num-cores=2")
    a = tvm.runtime.tensor(np.zeros((64, 4096), "float32"))
    allowed = os.sched_getaffinity(0)

    def restricted():
        return [t for t in os.listdir("/proc/self/task") if os.sched_getaffinity(int(t)) != allowed]

    for _ in range(50):
        module(a)
        time.sleep(0.001)
    # One that came too late for the last call is free again after the next it takes part in.
    deadline = time.monotonic() + 30
    while restricted() and time.monotonic() < deadline:
        module(a)
    assert not restricted()
