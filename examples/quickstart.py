# SPDX-License-Identifier: Apache-2.0
"""A tensor expression, compiled for this machine, checked against NumPy and timed."""

import time

import numpy as np
import tvm
from tvm import te

M = N = 1024

# 1. Say what to compute. Nothing about loops, vectors or threads.
A = te.placeholder((M, N), name="A", dtype="float32")
C = te.compute((M, N), lambda i, j: 1 / (1 + te.exp(-A[i, j])), name="C")
func = te.create_prim_func([A, C])

# 2. Compile it for the CPU this runs on.
begin = time.perf_counter()
mod = tvm.compile(func, target="llvm")
compile_ms = (time.perf_counter() - begin) * 1e3

# 3. Run it on data, and compare.
a = np.random.default_rng(0).uniform(-5, 5, (M, N)).astype("float32")
a_tvm = tvm.runtime.tensor(a)
c_tvm = tvm.runtime.empty((M, N), "float32")
mod(a_tvm, c_tvm)
with np.errstate(over="ignore"):
    expected = 1 / (1 + np.exp(-a.astype("float64")))
error = np.max(np.abs(c_tvm.numpy() - expected))


def microseconds(call, repeat=100):
    """The best of a few runs of `repeat` calls."""
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(repeat):
            call()
        best = min(best, time.perf_counter() - begin)
    return best / repeat * 1e6


ours = microseconds(lambda: mod(a_tvm, c_tvm))
numpys = microseconds(lambda: 1 / (1 + np.exp(-a)), repeat=10)

target = tvm.target.Target("llvm")
print(f"sigmoid of {M} x {N} float32 on {target.attrs['mcpu']}, {target.attrs['num-cores']} cores")
print(f"  compiled in        {compile_ms:8.1f} ms")
print(f"  largest error      {error:8.1e}")
print(f"  this library       {ours:8.1f} us per call")
print(f"  NumPy              {numpys:8.1f} us per call ({numpys / ours:.1f} times as long)")
if not error < 1e-6:
    raise SystemExit("the result is wrong")
print("The result is right.")
