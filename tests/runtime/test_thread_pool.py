# SPDX-License-Identifier: Apache-2.0
"""The pool from Python: where its threads may run, and whose they are."""

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


BESIDE_TORCH = """
import os, sys, threading
import numpy as np, torch, tvm
from tvm import te

torch.set_num_threads(2)
large = torch.ones(1 << 20)
torch.exp(large)  # its threads exist


def check(scale):
    a = te.placeholder((64, 4096), name="a")
    b = te.compute((64, 4096), lambda i, j: te.exp(a[i, j]) * scale, name="b")
    module = tvm.build(te.create_prim_func([a, b]), target="llvm -num-cores=2")
    x = np.random.default_rng(0).random((64, 4096), "float32")
    y = tvm.runtime.empty((64, 4096), "float32")
    before = len(os.listdir("/proc/self/task"))
    for _ in range(50):
        module(tvm.runtime.tensor(x), y)
        torch.exp(large)
    np.testing.assert_allclose(y.numpy(), np.exp(x) * scale, rtol=1e-6)
    return len(os.listdir("/proc/self/task")) - before


assert check(2.0) == 0, "threads beside those of PyTorch"
# The team belongs to this thread: others have the pool of the process.
failures = []
def elsewhere():
    try:
        check(3.0)
    except BaseException as error:
        failures.append(error)
threads = [threading.Thread(target=elsewhere) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
if (child := os.fork()) == 0:
    torch.set_num_threads(1)  # its threads are not in the child, and it does not know
    os._exit(0 if check(5.0) >= 0 else 1)
assert os.waitpid(child, 0)[1] == 0
"""


IN_A_CHILD = """
import os
import torch

torch.set_num_threads(2)
torch.exp(torch.ones(1 << 20))
if (child := os.fork()) == 0:  # where the threads of PyTorch are not
    import numpy as np, tvm
    from tvm import te

    a = te.placeholder((64, 4096), name="a")
    b = te.compute((64, 4096), lambda i, j: te.exp(a[i, j]), name="b")
    module = tvm.build(te.create_prim_func([a, b]), target="llvm -num-cores=2")
    y = tvm.runtime.empty((64, 4096), "float32")
    for _ in range(20):
        module(tvm.runtime.tensor(np.zeros((64, 4096), "float32")), y)
    os._exit(0 if (y.numpy() == 1).all() else 1)
assert os.waitpid(child, 0)[1] == 0
"""


def run(program):
    path = os.pathsep.join([os.path.dirname(tvm.__path__[0]), *filter(None, sys.path)])
    env = {**os.environ, "PYTHONPATH": path, "TVM_NUM_THREADS": "2"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_workers_keep_their_cpus():
    """A worker that is sent to another CPU may go anywhere again."""
    run(PROGRAM)


@pytest.mark.parametrize("program", [BESIDE_TORCH, IN_A_CHILD], ids=["beside", "in a child"])
def test_loops_run_on_the_threads_of_torch(program):
    """Two sets of threads on the same CPUs would wait for each other."""
    pytest.importorskip("torch")
    run(program)
