# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C stops long C++ calls with KeyboardInterrupt, and the process goes on."""

import os
import subprocess
import sys

import pytest

# What is interrupted takes many seconds if it is not, or more time and memory than there are.
SCRIPT = """
import resource, signal, threading
import numpy as np, tvm
from tvm import te, tir

used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 30), resource.RLIM_INFINITY))

def small():
    A = te.placeholder((8,), name="A")
    f = tvm.compile(te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1)]), target="llvm")
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    f(a, b)
    assert (b == a + 1).all()

def unrolled(n):
    A = tir.decl_buffer((n,), "float32", name="A")
    i, data = tir.Var("i", "int32"), tir.Var("data", "handle")
    value = tir.exp(A[i]) * tir.const(0.5, "float32") + tir.tanh(A[i])
    loop = tir.For(i, 0, n, tir.ForKind.UNROLLED, tir.BufferStore(A, value, [i]))
    return tvm.IRModule({"main": tir.PrimFunc([data], loop, buffer_map={data: A})})

def stops(call):
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        call()
        return False
    except KeyboardInterrupt:
        return True
    finally:
        timer.join()

small()
"""
CALLS = {
    "lowering": """
assert stops(lambda: tvm.compile(unrolled(200_000), target="llvm"))
""",
    "llvm": """
target = tvm.target.Target("llvm")
mod = tir.transform.BindTarget(target.with_host(target))(unrolled(6000))
mod = tir.pipeline.finalize_host_passes()(tir.get_default_tir_pipeline(target)(mod))
assert stops(lambda: tvm.get_global_func("target.build.llvm")(mod, target))
""",
    "one pass": """
mod = unrolled(2_000_000_000)
assert stops(lambda: tir.transform.UnrollLoop()(mod))
""",
    "more than once, after the linker set a handler": """
import tempfile
A = te.placeholder((8,), name="A")
f = tvm.compile(te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1)]), target="llvm")
with tempfile.TemporaryDirectory() as folder:
    f.export_library(folder + "/f.so")
for _ in range(3):
    assert stops(lambda: tvm.compile(unrolled(200_000), target="llvm"))
""",
    "measuring": """
A = te.placeholder((8,), name="A")
f = tvm.compile(te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1)]), target="llvm")
timer = f.time_evaluator("main", tvm.cpu(), number=10**10)
a, b = (tvm.runtime.tensor(np.zeros(8, "float32")) for _ in range(2))
assert stops(lambda: timer(a, b))
""",
    "waiting between measurements": """
A = te.placeholder((8,), name="A")
f = tvm.compile(te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1)]), target="llvm")
timer = f.time_evaluator("main", tvm.cpu(), number=1, repeat=2, cooldown_interval_ms=10**8)
a, b = (tvm.runtime.tensor(np.zeros(8, "float32")) for _ in range(2))
assert stops(lambda: timer(a, b))
""",
    # Between the pieces of a loop; one that runs to its end in one piece ends first.
    "one parallel kernel": """
slow = tvm.script.from_source('''@T.prim_func
def slow(A: T.Buffer((2048,), "float32")):
    for i in T.parallel(2048):
        for j in range(10_000_000):
            A[i] = A[i] * T.float32(0.99) + T.float32(0.5)
''')
f = tvm.compile(slow, target="llvm")
tvm.get_global_func("runtime.set_num_threads")(2)
assert stops(lambda: f(tvm.runtime.tensor(np.zeros(2048, "float32"))))
""",
    "handler": """
def handler(*_): raise ValueError("from the handler")
signal.signal(signal.SIGINT, handler)
try:
    stops(lambda: tvm.compile(unrolled(200_000), target="llvm"))
except ValueError as error:
    assert "from the handler" in str(error)
else:
    raise AssertionError("not stopped")
""",
}


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_stops(call):
    script = SCRIPT + CALLS[call] + "\nsmall()\nprint('fine')\n"
    env = {**os.environ, "TVM_CACHE_LIMIT_MB": "0"}
    run = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=300
    )
    assert (run.returncode, run.stdout) == (0, "fine\n"), run.stderr
