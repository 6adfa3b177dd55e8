# SPDX-License-Identifier: Apache-2.0
"""Tuning, written in the interface we share with Apache TVM: how fast trials are, and what they
give."""

import shutil
import tempfile
import time


def _elementwise(shape, compute, inputs=1):
    from tvm import te

    args = [te.placeholder(shape, name=f"A{i}") for i in range(inputs)]
    out = te.compute(shape, lambda *i: compute(te, *(a(*i) for a in args)), name="C")
    return [*args, out]


def _matmul(n, m, k, batch=0):
    from tvm import te

    lead = (batch,) if batch else ()
    a = te.placeholder((*lead, n, k), name="A")
    b = te.placeholder((*lead, k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    out = te.compute(
        (*lead, n, m),
        lambda *i: te.sum(a(*i[:-1], r) * b(*i[:-2], r, i[-1]), axis=r),
        name="C",
    )
    return [a, b, out]


def _conv(size, ci, co, kernel, depthwise=False):
    from tvm import te

    pad = kernel // 2
    a = te.placeholder((1, size, size, ci), name="A")
    w = te.placeholder((kernel, kernel, ci) if depthwise else (kernel, kernel, ci, co), name="W")
    padded = te.compute(
        (1, size + 2 * pad, size + 2 * pad, ci),
        lambda n, h, x, c: te.if_then_else(
            te.all(h >= pad, h < size + pad, x >= pad, x < size + pad),
            a[n, h - pad, x - pad, c],
            0.0,
        ),
        name="P",
    )
    rh, rw = te.reduce_axis((0, kernel), name="rh"), te.reduce_axis((0, kernel), name="rw")
    if depthwise:
        element = lambda n, h, x, c: te.sum(
            padded[n, h + rh, x + rw, c] * w[rh, rw, c], axis=[rh, rw]
        )
        return [a, w, te.compute((1, size, size, ci), element, name="C")]
    rc = te.reduce_axis((0, ci), name="rc")
    element = lambda n, h, x, c: te.sum(
        padded[n, h + rh, x + rw, rc] * w[rh, rw, rc, c], axis=[rh, rw, rc]
    )
    return [a, w, te.compute((1, size, size, co), element, name="C")]


def _reduce(shape, axis, how="sum"):
    from tvm import te

    a = te.placeholder(shape, name="A")
    r = te.reduce_axis((0, shape[axis]), name="r")
    kept = [e for i, e in enumerate(shape) if i != axis]

    def element(*i):
        index = [*i[:axis], r, *i[axis:]]
        return getattr(te, how)(a(*index), axis=r)

    return [a, te.compute(kept, element, name="C")]


def _softmax(n, m):
    from tvm import te

    a = te.placeholder((n, m), name="A")
    k, r = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="r")
    top = te.compute((n,), lambda i: te.max(a[i, k], axis=k), name="top")
    e = te.compute((n, m), lambda i, j: te.exp(a[i, j] - top[i]), name="e")
    total = te.compute((n,), lambda i: te.sum(e[i, r], axis=r), name="total")
    return [a, te.compute((n, m), lambda i, j: e[i, j] / total[i], name="C")]


def _transpose(n, m):
    from tvm import te

    a = te.placeholder((n, m), name="A")
    return [a, te.compute((m, n), lambda i, j: a[j, i], name="C")]


def _pool(size, channels):
    from tvm import te

    a = te.placeholder((1, 2 * size, 2 * size, channels), name="A")
    h, w = te.reduce_axis((0, 2), name="h"), te.reduce_axis((0, 2), name="w")
    element = lambda n, i, j, c: te.max(a[n, 2 * i + h, 2 * j + w, c], axis=[h, w])
    return [a, te.compute((1, size, size, channels), element, name="C")]


WORKLOADS = {
    "sigmoid 1024": lambda: _elementwise((1024, 1024), lambda te, x: 1 / (1 + te.exp(-x))),
    "add 1024": lambda: _elementwise((1024, 1024), lambda te, x, y: x + y, 2),
    "gelu 333x777": lambda: _elementwise(
        (333, 777), lambda te, x: 0.5 * x * (1 + te.erf(x * 0.70710678))
    ),
    "tanh 64x1000x7": lambda: _elementwise((64, 1000, 7), lambda te, x: te.tanh(x)),
    "row sum 4096x1024": lambda: _reduce((4096, 1024), 1),
    "column sum 4096x1024": lambda: _reduce((4096, 1024), 0),
    "row max 1000x999": lambda: _reduce((1000, 999), 1, "max"),
    "softmax 512x1024": lambda: _softmax(512, 1024),
    "matmul 512": lambda: _matmul(512, 512, 512),
    "matmul 1024": lambda: _matmul(1024, 1024, 1024),
    "matmul 384x500x300": lambda: _matmul(384, 500, 300),
    "skinny matmul 4x1024x1024": lambda: _matmul(4, 1024, 1024),
    "batch matmul 12x128x64": lambda: _matmul(128, 128, 64, 12),
    "attention 12x128x128": lambda: _matmul(128, 64, 128, 12),
    "conv2d 56x56x64": lambda: _conv(56, 64, 64, 3),
    "conv2d 1x1 28x28x128": lambda: _conv(28, 128, 128, 1),
    "depthwise 56x56x64": lambda: _conv(56, 64, 64, 3, True),
    "max pool 56x56x64": lambda: _pool(56, 64),
    "transpose 1024": lambda: _transpose(1024, 1024),
    "transpose 1000x700": lambda: _transpose(1000, 700),
}

TRIALS = {"matmul 1024": 256}  # else 100
PEERS = {"sigmoid 1024": "sigmoid", "matmul 512": "matmul", "matmul 1024": "matmul"}
# Whose trials are timed.
TIMED = ("sigmoid 1024", "matmul 512", "matmul 1024", "conv2d 56x56x64")


def function(name):
    """The workload as a PrimFunc."""
    from tvm import te

    return te.create_prim_func(WORKLOADS[name]())


def target():
    """This machine with the CPUs we may use, named for both."""
    import os

    import programs  # beside this file: workers have this folder in their path
    import tvm

    host = programs.host_target()
    config = {
        "kind": "llvm",
        "mcpu": str(host.attrs["mcpu"]),
        "num-cores": len(os.sched_getaffinity(0)),
    }
    return tvm.target.Target(config)


def distinct(database):
    """How many programs were measured, each counted once however often that was."""
    return len({str(record.trace) for record in database.get_all_tuning_records()})


def seconds_per_trial(name, trials):
    """Wall time of a run divided by the programs it measured."""
    try:
        from tvm import meta_schedule as ms
    except ImportError:
        from tvm.s_tir import meta_schedule as ms  # what newer versions call it

    folder = tempfile.mkdtemp()
    try:
        begin = time.perf_counter()
        database = ms.tune_tir(function(name), target(), folder, trials)
        seconds = time.perf_counter() - begin
        return seconds / max(1, distinct(database))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
