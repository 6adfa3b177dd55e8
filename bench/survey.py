# SPDX-License-Identifier: Apache-2.0
"""What the default rules make of some 350 operators: all kinds, shapes and types that they know.

`python -m bench.survey lower A.json` writes a digest of the lowered code of every operator for
every target, `time A.json` the time each takes on this machine, `compare A.json B.json` what
differs between two such files. A change that must not change code proves it with `lower` before and
after; one that does shows `time` of both.
"""

import argparse
import hashlib
import itertools
import json
import math
import sys

import numpy as np
import tvm
from tvm import te, tir

TARGETS = {
    "x86-64": "llvm -mcpu=x86-64 -mtriple=x86_64-linux-gnu -num-cores=2",
    "avx2": "llvm -mcpu=haswell -mtriple=x86_64-linux-gnu -num-cores=2",
    "avx512": "llvm -mcpu=sapphirerapids -mtriple=x86_64-linux-gnu -num-cores=2",
    "aarch64": "llvm -mcpu=neoverse-n1 -mtriple=aarch64-linux-gnu -num-cores=2",
    "c": "c -num-cores=2",
}
FLOATS = ("float32", "float64", "float16", "bfloat16")


def _input(shape, dtype, name="A"):
    return te.placeholder(shape, dtype, name)


def elementwise(shape, dtype, function):
    a = _input(shape, dtype)
    return [a, te.compute(shape, lambda *i: function(a(*i)), "out")]


def broadcast(shape, axis, dtype):
    a, b = _input(shape, dtype), _input(shape[axis : axis + 1], dtype, "B")
    return [a, b, te.compute(shape, lambda *i: a(*i) * b[i[axis]] + b[i[axis]], "out")]


def reduction(shape, axes, dtype, how=te.sum, after=None):
    a = _input(shape, dtype)
    reduced = {d: te.reduce_axis((0, shape[d]), f"k{d}") for d in axes}
    kept = [d for d in range(len(shape)) if d not in axes]

    def value(*i):
        index = dict(zip(kept, i, strict=False)) | reduced
        return how(a(*[index[d] for d in range(len(shape))]), list(reduced.values()))

    out = te.compute([shape[d] for d in kept] or [1], value, "out")
    return [a, out if after is None else te.compute(out.shape, lambda *i: after(out(*i)), "after")]


def softmax(n, m, dtype):
    a, k, r = _input((n, m), dtype), te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "r")
    top = te.compute((n,), lambda i: te.max(a[i, k], k), "top")
    power = te.compute((n, m), lambda i, j: te.exp(a[i, j] - top[i]), "power")
    total = te.compute((n,), lambda i: te.sum(power[i, r], r), "total")
    return [a, te.compute((n, m), lambda i, j: power[i, j] / total[i], "out")]


def layer_norm(n, m, dtype):
    a, k, r = _input((n, m), dtype), te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "r")
    size = tir.const(m, dtype)
    mean = te.compute((n,), lambda i: te.sum(a[i, k], k), "mean")
    square = te.compute((n,), lambda i: te.sum(a[i, r] * a[i, r], r), "square")

    def value(i, j):
        m1 = mean[i] / size
        return (a[i, j] - m1) * te.rsqrt(square[i] / size - m1 * m1 + tir.const(1e-5, dtype))

    return [a, te.compute((n, m), value, "out")]


def permute(shape, order, dtype):
    a = _input(shape, dtype)
    place = [order.index(d) for d in range(len(shape))]
    out = [shape[d] for d in order]
    return [a, te.compute(out, lambda *i: a(*[i[p] for p in place]), "out")]


def product(n, m, d, dtype, out=None, turn="nn", batch=None, after=None):
    lead = () if batch is None else (batch,)
    a = _input(lead + ((n, d) if turn[0] == "n" else (d, n)), dtype)
    b = _input(lead + ((d, m) if turn[1] == "n" else (m, d)), dtype, "B")
    k, out = te.reduce_axis((0, d), "k"), out or dtype

    def value(*i):
        (*o, i, j) = i
        x = a(*o, i, k) if turn[0] == "n" else a(*o, k, i)
        y = b(*o, k, j) if turn[1] == "n" else b(*o, j, k)
        return te.sum(x.astype(out) * y.astype(out), k)

    c = te.compute((*lead, n, m), value, "out")
    if after is None:
        return [a, b, c]
    return [a, b, te.compute(c.shape, lambda *i: after(c(*i)), "after")]


def convolution(channels, size, filters, window, step, dtype, lines=False, depthwise=False):
    out = (size - window) // step + 1
    c = te.reduce_axis((0, channels), "c")
    y, x = te.reduce_axis((0, window), "y"), te.reduce_axis((0, window), "x")
    if lines:
        a = _input((1, size, size, channels), dtype)
        if depthwise:
            w = _input((window, window, channels), dtype, "W")
            value = lambda n, i, j, f: te.sum(
                a[n, i * step + y, j * step + x, f] * w[y, x, f], [y, x]
            )
            return [a, w, te.compute((1, out, out, channels), value, "out")]
        w = _input((window, window, channels, filters), dtype, "W")
        value = lambda n, i, j, f: te.sum(
            a[n, i * step + y, j * step + x, c] * w[y, x, c, f], [y, x, c]
        )
        return [a, w, te.compute((1, out, out, filters), value, "out")]
    a = _input((1, channels, size, size), dtype)
    if depthwise:
        w = _input((channels, window, window), dtype, "W")
        value = lambda n, f, i, j: te.sum(a[n, f, i * step + y, j * step + x] * w[f, y, x], [y, x])
        return [a, w, te.compute((1, channels, out, out), value, "out")]
    w = _input((filters, channels, window, window), dtype, "W")
    value = lambda n, f, i, j: te.sum(
        a[n, c, i * step + y, j * step + x] * w[f, c, y, x], [c, y, x]
    )
    return [a, w, te.compute((1, filters, out, out), value, "out")]


def pool(channels, size, window, step, how, dtype):
    out = (size - window) // step + 1
    a = _input((1, channels, size, size), dtype)
    y, x = te.reduce_axis((0, window), "y"), te.reduce_axis((0, window), "x")
    value = lambda n, c, i, j: how(a[n, c, i * step + y, j * step + x], [y, x])
    return [a, te.compute((1, channels, out, out), value, "out")]


def padded(channels, size, margin, window, dtype):
    whole = size + 2 * margin
    a, zero = _input((1, channels, size, size), dtype), tir.const(0, dtype)
    inside = lambda i: tir.all(i >= margin, i < margin + size)
    p = te.compute(
        (1, channels, whole, whole),
        lambda n, c, i, j: tir.if_then_else(
            tir.all(inside(i), inside(j)), a[n, c, i - margin, j - margin], zero
        ),
        "pad",
    )
    w = _input((channels, window, window), dtype, "W")
    y, x = te.reduce_axis((0, window), "y"), te.reduce_axis((0, window), "x")
    out = whole - window + 1
    value = lambda n, c, i, j: te.sum(p[n, c, i + y, j + x] * w[c, y, x], [y, x])
    return [a, w, te.compute((1, channels, out, out), value, "out")]


def join(n, m, dtype):
    a, b = _input((n, m), dtype), _input((n, m + 3), dtype, "B")
    value = lambda i, j: tir.if_then_else(j < m, a[i, j], b[i, j - m])
    return [a, b, te.compute((n, 2 * m + 3), value, "out")]


def take(n, m, dtype):
    a, index = _input((n, m), dtype), _input((n,), "int32", "I")
    return [a, index, te.compute((n, m), lambda i, j: a[index[i], j], "out")]


UNARY = {
    "relu": lambda x: te.max(x, tir.const(0, x.dtype)),
    "exp": te.exp,
    "log": te.log,
    "tanh": te.tanh,
    "sigmoid": te.sigmoid,
    "erf": te.erf,
    "sqrt": te.sqrt,
    "gelu": lambda x: x * (te.erf(x * tir.const(0.7071, x.dtype)) + tir.const(1, x.dtype)),
    "third": lambda x: x / tir.const(3, x.dtype),
}


def _cases():
    """(name, tensors) of every operator."""
    each = itertools.product
    for (name, function), shape, dtype in each(
        UNARY.items(), ((512, 1024), (7, 11, 13), (1,)), ("float32", "float64", "float16")
    ):
        yield f"{name} {shape} {dtype}", elementwise(shape, dtype, function)
    for shape, dtype in each(((512, 1024), (333,)), ("int8", "int32", "int64", "bfloat16")):
        yield f"add {shape} {dtype}", elementwise(shape, dtype, lambda x: x + x)
    for source, goal in each(("float32", "int8", "int32", "float16"), ("float32", "int8", "uint8")):
        cast = lambda x, goal=goal: x.astype(goal)
        yield f"cast {source} {goal}", elementwise((511, 300), source, cast)
    for (shape, axis), dtype in each(
        [((64, 32, 28, 28), 1), ((256, 1000), 1), ((256, 1000), 0), ((3, 5, 7), 2)], FLOATS
    ):
        yield f"broadcast {shape} {axis} {dtype}", broadcast(shape, axis, dtype)
    for (shape, axes), dtype in each(
        [
            ((512, 1024), (1,)),
            ((1024, 512), (0,)),
            ((512, 512), (0, 1)),
            ((33, 257), (1,)),
            ((65, 333), (0,)),
            ((16, 64, 70), (0, 1)),
            ((30, 7, 40), (0, 2)),
            ((1, 100000), (1,)),
        ],
        ("float32", "float64", "int32"),
    ):
        yield f"sum {shape} {axes} {dtype}", reduction(shape, axes, dtype)
    for shape, axes in [((512, 1024), (1,)), ((1024, 512), (0,)), ((37, 5000), (1,))]:
        for name, how in {"max": te.max, "min": te.min}.items():
            yield f"{name} {shape} {axes}", reduction(shape, axes, "float32", how)
        yield f"sum, exp {shape} {axes}", reduction(shape, axes, "float32", te.sum, te.exp)
    for (n, m), dtype in each([(128, 1000), (1024, 64), (3, 67), (1, 50000)], FLOATS):
        yield f"softmax {n} {m} {dtype}", softmax(n, m, dtype)
        yield f"layer norm {n} {m} {dtype}", layer_norm(n, m, dtype)
    for (shape, order), dtype in each(
        [
            ((512, 512), (1, 0)),
            ((211, 307), (1, 0)),
            ((8, 64, 28, 28), (0, 2, 3, 1)),
            ((8, 28, 28, 64), (0, 3, 1, 2)),
            ((12, 64, 70), (2, 0, 1)),
        ],
        ("float32", "int8", "float64", "float16"),
    ):
        yield f"permute {shape} {order} {dtype}", permute(shape, order, dtype)
    sides = [
        (64, 64, 64),
        (256, 256, 256),
        (37, 83, 19),
        (1, 512, 512),
        (384, 16, 512),
        (100, 1, 300),
    ]
    for (n, m, d), turn in each(sides, ("nn", "nt", "tn", "tt")):
        yield f"product {n} {m} {d} {turn}", product(n, m, d, "float32", turn=turn)
    for (n, m, d), (dtype, out) in each(
        sides,
        [
            ("float64", None),
            ("float16", None),
            ("bfloat16", "float32"),
            ("int8", "int32"),
            ("uint8", "int32"),
            ("int16", "int32"),
        ],
    ):
        yield f"product {n} {m} {d} {dtype}", product(n, m, d, dtype, out)
    for n, m, d in sides[:3]:
        yield f"product, relu {n} {m} {d}", product(n, m, d, "float32", after=UNARY["relu"])
        yield f"batch of products {n} {m} {d}", product(n, m, d, "float32", batch=4)
    windows = [(16, 28, 32, 3, 1), (64, 14, 64, 1, 1), (3, 64, 16, 7, 2), (5, 13, 7, 3, 2)]
    for (c, s, f, w, step), lines, depthwise in each(windows, (False, True), (False, True)):
        tensors = convolution(c, s, f, w, step, "float32", lines, depthwise)
        yield f"convolution {c} {s} {f} {w} {step} {lines} {depthwise}", tensors
    for (c, s, f, w, step), dtype in each(windows, ("float64", "float16", "bfloat16")):
        yield f"convolution {c} {s} {f} {w} {step} {dtype}", convolution(c, s, f, w, step, dtype)
        tensors = convolution(c, s, f, w, step, dtype, lines=True)
        yield f"convolution of lines {c} {s} {f} {w} {step} {dtype}", tensors
    whole = [(300, 400), (64, 1000)]
    for shape, axes, dtype in each(whole, [(0,), (1,)], ("int8", "uint8", "int64")):
        yield f"sum {shape} {axes} {dtype}", reduction(shape, axes, dtype)
    for (c, s, w, step), how in each(
        [(16, 56, 3, 2), (5, 21, 2, 2), (7, 30, 3, 1)], (te.max, te.sum)
    ):
        yield f"pool {c} {s} {w} {step} {how.__name__}", pool(c, s, w, step, how, "float32")
    for c, s, margin, w in [(16, 28, 1, 3), (3, 17, 2, 5), (32, 14, 1, 3)]:
        yield f"padded {c} {s} {margin} {w}", padded(c, s, margin, w, "float32")
    for n, m in [(64, 70), (3, 5), (300, 256)]:
        yield f"join {n} {m}", join(n, m, "float32")
        yield f"take {n} {m}", take(n, m, "float32")
    n, m, d = (te.var(name) for name in "nmd")
    yield "dynamic gelu", elementwise((n, m), "float32", UNARY["gelu"])
    yield "dynamic row sum", reduction((n, m), (1,), "float32")
    yield "dynamic column sum", reduction((n, m), (0,), "float32")
    yield "dynamic softmax", softmax(n, m, "float32")
    yield "dynamic transpose", permute((n, m), (1, 0), "float32")
    yield "dynamic product", product(n, m, d, "float32")


def cases():
    """{name: PrimFunc}"""
    return {name: te.create_prim_func(tensors) for name, tensors in _cases()}


def digest(func, target):
    """Of the lowered program."""
    mod = tir.transform.BindTarget(target.with_host(target))(tvm.IRModule({"main": func}))
    lowered = tir.pipeline.finalize_host_passes()(tir.get_default_tir_pipeline(target)(mod))
    # The target is part of the functions: what it is called is not what it becomes.
    text = "\n".join(
        lowered[var].without_attr("target").script()
        for var in sorted(lowered.get_global_vars(), key=lambda v: v.name_hint)
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def lower(targets):
    """{"operator @ target": digest of the lowered program}"""
    programs = cases()
    return {
        f"{name} @ {label}": digest(func, tvm.target.Target(TARGETS[label]))
        for label in targets
        for name, func in programs.items()
    }


def _seconds(func, rng):
    target = tvm.target.Target("llvm -num-cores=1")
    kernel = tvm.compile(func, target)
    arrays = []
    for param in func.params:
        buffer = func.buffer_map[param]
        shape = [int(extent) for extent in buffer.shape]
        top = shape[0] if buffer.dtype == "int32" and len(shape) == 1 else 4
        tensor = tvm.runtime.empty(shape, str(buffer.dtype))
        values = rng.integers(1, top, shape) if top > 1 else np.zeros(shape)
        tensor.copyfrom(values.astype(tensor.numpy().dtype))
        arrays.append(tensor)
    timer = kernel.mod.time_evaluator("main", tvm.cpu(), number=1, repeat=5, min_repeat_ms=5)
    return min(timer(*arrays).results)


def time():
    """{operator: seconds of one call}, of operators of known shapes."""
    rng = np.random.default_rng(0)
    return {
        name: _seconds(func, rng)
        for name, func in cases().items()
        if not name.startswith("dynamic")
    }


def compare(before, after):
    """Lines that say what differs: digests one by one, times by their ratio."""
    both = [name for name in before if name in after]
    for name in sorted(set(before) ^ set(after)):
        yield f"only in one: {name}"
    if not both or isinstance(before[both[0]], str):
        changed = [name for name in both if before[name] != after[name]]
        yield from changed
        yield f"{len(changed)} of {len(both)} differ"
        return
    ratios = {name: after[name] / before[name] for name in both}
    for name in sorted(both, key=ratios.get, reverse=True):
        if not 0.95 < ratios[name] < 1.05:
            yield f"{ratios[name]:.3f} {name}"
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    yield f"{len(both)} operators, after / before by geometric mean {mean:.3f}"


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m bench.survey", description=__doc__)
    parser.add_argument("what", choices=["lower", "time", "compare"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--targets", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    options = parser.parse_args(arguments)
    if len(options.files) != 1 + (options.what == "compare"):
        parser.error(f"{options.what}: expected one file to write, or two to compare")
    if options.what == "compare":
        parts = []
        for name in options.files:
            with open(name, encoding="utf-8") as file:
                parts.append(json.load(file))
        print("\n".join(compare(*parts)))
        return
    result = lower(options.targets) if options.what == "lower" else time()
    with open(options.files[0], "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    print(f"{len(result)} rows")


if __name__ == "__main__":
    main(sys.argv[1:])
