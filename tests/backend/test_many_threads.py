# SPDX-License-Identifier: Apache-2.0
"""Many threads compile and run different kernels at once."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tvm
from tvm import te, tir

THREADS = 8


def _kernel(i):
    """A function of its own for each number, and what it computes."""
    n = 16 + i
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    kinds = [
        ([A, te.compute((n, n), lambda x, y: tir.exp(A[x, y]) * i)], lambda a, b: np.exp(a) * i),
        ([A, te.compute((n,), lambda x: te.sum(A[x, k], axis=k))], lambda a, b: a.sum(1)),
        (
            [A, B, te.compute((n, n), lambda x, y: te.sum(A[x, k] * B[k, y], axis=k))],
            lambda a, b: a @ b,
        ),
    ]
    tensors, expected = kinds[i % len(kinds)]
    return te.create_prim_func(tensors), len(tensors), expected


def _compile_and_run(i, together):
    together.wait()  # first of all: whoever failed before it would keep the others waiting
    func, count, expected = _kernel(i)
    run = tvm.compile(func, target="llvm")
    shape = func.buffer_map[func.params[-1]].shape
    rng = np.random.default_rng(i)
    a, b = (rng.random((16 + i, 16 + i), "float32") for _ in range(2))
    out = np.zeros([int(extent) for extent in shape], "float32")
    for _ in range(10):
        run(*[a, b][: count - 1], out)
    np.testing.assert_allclose(out, expected(a, b), rtol=1e-4)
    return i


def _all(numbers):
    together = threading.Barrier(THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        done = pool.map(lambda i: _compile_and_run(i, together), numbers)
        assert list(done) == list(numbers)


def test_threads_compile_and_run():
    _all(range(3 * THREADS))


def test_threads_share_the_disk_cache(tmp_path):
    """The first process fills it from all threads at once, the second one reads it so."""
    env = {**os.environ, "TVM_CACHE_DIR": str(tmp_path), "TVM_CACHE_LIMIT_MB": "100"}
    for _ in range(2):
        run = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == THREADS


def test_threads_use_one_module():
    func, _, expected = _kernel(2)
    run = tvm.compile(func, target="llvm")
    a, b = (np.random.default_rng(s).random((18, 18), "float32") for s in range(2))

    def call(_):
        out = np.zeros((18, 18), "float32")
        run(a, b, out)
        np.testing.assert_allclose(out, expected(a, b), rtol=1e-4)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(call, range(200)))


if __name__ == "__main__":
    _all(range(THREADS))
