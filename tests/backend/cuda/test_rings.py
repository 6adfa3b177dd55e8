# SPDX-License-Identifier: Apache-2.0
"""Kernels of the default rules in the interpreter: copies that are done early or late, and warps
that fall behind each other, do not change what they compute; a missing wait or barrier does."""

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import te, topi

from tests.backend.cuda.kernels import lowered, run
from tests.backend.cuda.products import product

NUMPY = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int8": np.int8}


def operands(m, n, k, dtype, trans_b):
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(-4, 5, shape).astype(NUMPY.get(dtype, dtype))
        for shape in ((m, k), (n, k) if trans_b else (k, n))
    )
    right = b.T if trans_b else b
    return a, b, a.astype("int64") @ right.astype("int64")  # small integers: exact in any order


@pytest.mark.parametrize(
    "m, n, k, dtype, trans_b",
    [
        (32, 32, 64, "float16", False),
        (17, 24, 40, "float16", True),
        (16, 16, 33, "bfloat16", False),
        (32, 32, 128, "int8", True),
    ],
)
def test_products(m, n, k, dtype, trans_b):
    out = "int32" if dtype == "int8" else "float32"
    mod = lowered(product(m, n, k, dtype, out, trans_b=trans_b))
    assert "ptx_" in mod.script()
    a, b, expected = operands(m, n, k, dtype, trans_b)
    got = run(mod, a, b, np.full((m, n), -1, out), threads="random", seed=1)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("how, bound", [("tf32", 1e-3), ("3xtf32", 1e-6)])
def test_float32_in_other_ways(how, bound, trans_b):
    config = {"tir.float32_products": how}
    mod = lowered(product(32, 24, 40, "float32", trans_b=trans_b), config=config)
    assert "T.ptx_mma(" in mod.script()
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s).astype("float32") for s in ((32, 40), (24, 40)))
    right = b if trans_b else np.ascontiguousarray(b.T)
    got = run(mod, a, right, np.full((32, 24), np.nan, "float32"), threads="random")
    expected = a.astype("float64") @ b.T.astype("float64")
    error = np.linalg.norm(got - expected) / np.linalg.norm(expected)
    assert (1e-5 if how == "tf32" else 0) < error < bound


def test_float32_in_an_unknown_way():
    with pytest.raises(ValueError, match="expected float32, tf32 or 3xtf32, got 'fast'"):
        lowered(product(32, 24, 40, "float32"), config={"tir.float32_products": "fast"})


@pytest.mark.parametrize("name", ["ptx_wait_group", "tvm_storage_sync"])
def test_what_is_missing_is_seen(name):
    mod = lowered(product(16, 16, 128, "float16"))

    def drop(node):
        is_it = isinstance(node, tvm.tir.Evaluate) and isinstance(node.value, tvm.tir.Call)
        return tvm.tir.Evaluate(0) if is_it and node.value.op.name == "tir." + name else None

    func = mod["main"]
    without = func.with_body(tvm.tir.stmt_functor.ir_transform(func.body, None, drop))
    a, b, expected = operands(16, 16, 128, "float16", False)
    results = [
        run(without, a, b, np.full((16, 16), -1, "float32"), threads="random", seed=seed)
        for seed in (0, 2)
    ]
    assert not all(np.array_equal(got, expected) for got in results)


@pytest.mark.parametrize("columns", [100, 300])
def test_rows(columns):
    A = te.placeholder((3, columns), name="A")
    mod = lowered(te.create_prim_func([A, topi.nn.softmax(A, axis=1)]))
    a = np.random.default_rng(0).normal(size=(3, columns)).astype("float32")
    e = np.exp(a.astype("float64") - a.max(axis=1, keepdims=True))
    got = run(mod, a, np.zeros_like(a), threads="random", seed=1)
    np.testing.assert_allclose(got, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
