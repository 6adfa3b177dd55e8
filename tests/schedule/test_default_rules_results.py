# SPDX-License-Identifier: Apache-2.0
"""Default rules: results stay, whatever the target and the sizes."""

import pytest
import tvm
import tvm.testing
from tvm import te, tir
from tvm.target import Target
from tvm.tir.schedule import apply_default_rules

from .operators import (
    CASES,
    DYNAMIC,
    TARGET,
    dense,
    matmul,
    run,
    sigmoid,
    softmax,
    transpose,
    values_of,
)

TARGETS = [
    TARGET,
    "c -num-cores=2",
    "llvm -num-cores=1",
    "llvm -num-cores=4 -mcpu=haswell",
    "llvm -num-cores=2 -mcpu=x86-64",
]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", dict.fromkeys(TARGETS))
def test_results(name, target):
    if not tvm.testing.device_enabled(target):
        pytest.skip(f"no code generator for {target} here")
    args, reference = CASES[name]
    inputs, out = values_of(args)
    got = run(tvm.build(te.create_prim_func(args), target=target), inputs, out)
    tvm.testing.assert_allclose(got, reference(*inputs), rtol=1e-4, atol=1e-4)


SMALL = {
    "sigmoid of odd sizes": sigmoid(3, 5, 7),
    "softmax": softmax(3, 40),
    "matmul": matmul(8, 33, 6),
    "transpose": transpose(16, 33),
    "dense": dense(17, 16, 5),
}


@pytest.mark.parametrize("name", SMALL)
def test_interpreter_agrees(name):
    """The scheduled program itself, without lowering and code generation."""
    args, reference = SMALL[name], CASES[name][1]
    sch = tir.Schedule(te.create_prim_func(args), debug_mask="all")
    assert apply_default_rules(sch, "main", Target(TARGET))
    inputs, out = values_of(args)
    tir.interpret(sch.mod["main"])(*inputs, out)
    tvm.testing.assert_allclose(out, reference(*inputs), rtol=1e-4, atol=1e-4)


# Shapes that reach rules for large ones: the caches of these targets are small.
LARGE = [
    (1, 512, 640),
    (1, 519, 641),
    (6, 512, 640),
    (16, 1024, 512),
    (17, 530, 768),
    (5, 777, 640),
]
LARGE += [(256, 300, 300), (257, 263, 331), (2, 1021, 1009)]


@pytest.mark.parametrize("rows, columns, depth", LARGE)
@pytest.mark.parametrize("cpu", ["haswell", "x86-64", ""])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_products(rows, columns, depth, cpu, dtype):
    target = f"llvm -num-cores=2 -l2-cache-bytes=65536 {cpu and '-mcpu='}{cpu}"
    a, b = te.placeholder((rows, depth), dtype), te.placeholder((depth, columns), dtype)
    k = te.reduce_axis((0, depth))
    args = [a, b, te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], k))]
    inputs, out = values_of(args)
    inputs, out = [x.astype(dtype) for x in inputs], out.astype(dtype)
    got = run(tvm.build(te.create_prim_func(args), target=target), inputs, out)
    exact = inputs[0].astype("float64") @ inputs[1].astype("float64")
    size = abs(inputs[0]).astype("float64") @ abs(inputs[1]).astype("float64")
    rounding = {"float32": 2.0**-24, "float64": 2.0**-53}[dtype]
    # (NumPy rounds the exact product of doubles itself.)
    assert (abs(got - exact) <= 2 * depth * rounding * size).all()


SIZES = [(1, 1, 1), (5, 7, 3), (64, 256, 20), (77, 333, 65), (4, 64, 0), (3, 0, 5), (0, 9, 4)]


@pytest.mark.parametrize("name", DYNAMIC)
@pytest.mark.parametrize("target", dict.fromkeys([TARGET, "c -num-cores=2"]))
def test_dynamic_shapes(name, target):
    if not tvm.testing.device_enabled(target):
        pytest.skip(f"no code generator for {target} here")
    args, reference = DYNAMIC[name]
    module = tvm.build(te.create_prim_func(args), target=target)
    for n, m, k in SIZES:
        if name == "softmax" and m == 0:  # NumPy has no maximum of nothing
            continue
        inputs, out = values_of(args, {"n": n, "m": m, "k": k})
        tvm.testing.assert_allclose(
            run(module, inputs, out), reference(*inputs), rtol=1e-4, atol=1e-4
        )
