# SPDX-License-Identifier: Apache-2.0
"""Default schedules for target c: the same as for llvm, written as vectors of the compiler."""

import numpy as np
import pytest
import tvm
from tvm import te, topi

# A target that says all it needs: the text is the same on every machine.
AVX2 = "c -num-cores=1 -mcpu=haswell -mattr=+avx2,+fma"


def product(n=64, dtype="float32"):
    A, B = (te.placeholder((n, n), dtype, name=name) for name in "AB")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return te.create_prim_func([A, B, C])


def text(func, target=AVX2):
    return tvm.compile(func, target).mod.inspect_source("c")


def test_products_have_tiles_in_vectors():
    made = text(product())
    assert (
        "typedef float tvm_f32x8 __attribute__((vector_size(32), aligned(4), may_alias));" in made
    )
    sums = [line for line in made.splitlines() if line.count("*(tvm_f32x8*)&C_local") == 2]
    assert len(sums) >= 8 and all(" * " in line and "lane" not in line for line in sums)


def test_schedules_are_those_of_llvm():
    sch = [tvm.tir.Schedule(product()) for _ in range(2)]
    common = "-num-cores=1 -mattr=+avx2,+fma -mtriple=x86_64-linux-gnu -mcpu=haswell"
    if not tvm.runtime.enabled("llvm"):
        pytest.skip("there is no llvm to compare with")
    rules = [
        tvm.tir.schedule.apply_default_rules(s, "main", tvm.target.Target(f"{kind} {common}"))
        for s, kind in zip(sch, ("c", "llvm"), strict=True)
    ]
    assert rules[0] == rules[1] == "BlockByBlock"
    tvm.ir.assert_structural_equal(sch[0].mod, sch[1].mod)


def test_without_vectors_on_demand():
    with tvm.transform.PassContext(config={"tir.disable_vectorize": True}):
        assert "vector_size" not in text(product())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "int64"])
def test_results_of_products(dtype):
    rng = np.random.default_rng(0)
    n = 45  # no multiple of a tile
    a, b = ((rng.standard_normal((n, n)) * 9).astype(dtype) for _ in range(2))
    c = np.zeros((n, n), dtype)
    tvm.compile(product(n, dtype), "c")(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_extrema_of_vectors_keep_nan_and_zero():
    A = te.placeholder((40, 3), name="A")
    B = te.placeholder((40, 3), name="B")
    pair = tvm.tir.max, tvm.tir.min
    results = [
        te.compute((40, 3), lambda i, j, f=f: f(A[i, j], B[i, j]), name=f.__name__) for f in pair
    ]
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5], "float32")
    rng = np.random.default_rng(0)
    a, b = (rng.choice(values, (40, 3)) for _ in range(2))
    got = [np.zeros((40, 3), "float32") for _ in pair]
    tvm.compile(te.create_prim_func([A, B, *results]), "c")(a, b, *got)
    np.testing.assert_array_equal(got[0], np.maximum(a, b))
    np.testing.assert_array_equal(got[1], np.minimum(a, b))


def test_a_broadcast_keeps_the_sign_of_zero():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: tvm.tir.const(-0.0, "float32") * A[0], name="B")
    b = np.ones(64, "float32")
    tvm.compile(te.create_prim_func([A, B]), "c")(np.ones(64, "float32"), b)
    assert np.all(b == 0) and np.all(np.signbit(b))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: topi.nn.softmax(x),
        lambda x: topi.sum(x, axis=0),
        lambda x: topi.max(x, axis=1),
        lambda x: topi.transpose(x),
        lambda x: topi.nn.relu(x + 0.5),
    ],
    ids=["softmax", "columns", "rows", "transpose", "relu"],
)
def test_results_are_those_of_llvm(make):
    if not tvm.runtime.enabled("llvm"):
        pytest.skip("there is no llvm to compare with")
    x = te.placeholder((37, 70), name="x")
    y = make(x)
    func = te.create_prim_func([x, y])
    data = np.random.default_rng(0).standard_normal((37, 70)).astype("float32")
    results = []
    for kind in ("c", "llvm"):
        results.append(np.zeros([int(n) for n in y.shape], "float32"))
        tvm.compile(func, kind)(data, results[-1])
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)
