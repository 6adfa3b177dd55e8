# SPDX-License-Identifier: Apache-2.0
"""Schedules with the intrinsics of mma.sync and programs with operators of PTX, on a GPU."""

import numpy as np
import pytest
import tvm

from tests.backend.cuda import test_ptx as programs
from tests.backend.cuda.test_mma_schedules import (
    PRODUCTS,
    in_stages,
    mma_product,
    operands,
    swizzled,
)
from tests.gpu.test_kernels import run


def has_bytes(dtype):
    major, minor = map(int, tvm.cuda(0).compute_version.split("."))
    return not dtype.startswith("float8") or (major, minor) >= (8, 9)


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("dtype, out", PRODUCTS)
@pytest.mark.parametrize("size", [32, 128])
def test_intrinsics_compute_products(dtype, out, trans_b, size):
    if not has_bytes(dtype):
        pytest.skip("8-bit floats are multiplied from sm_89 on")
    a, b, c, expected = operands(dtype, out, trans_b, size)
    got = run(mma_product(dtype, out, trans_b, size=size), a, b, c).astype("float64")
    bound = {"float32": 2e-3 if dtype.startswith("float8") else 1e-5, "float16": 5e-3, "int32": 0}
    assert np.linalg.norm(got - expected) <= bound[out] * np.linalg.norm(expected)


@pytest.mark.parametrize("trans_b", [False, True])
def test_one_operator_stores_a_tile(trans_b):
    a, b, c, expected = operands("float16", "float32", trans_b, 64)
    func = mma_product("float16", "float32", trans_b, "shared", size=64, simple=False)
    np.testing.assert_allclose(run(func, a, b, c), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("marks", [swizzled, in_stages])
@pytest.mark.parametrize("size", [32, 128])
def test_swizzled_tiles_in_stages(marks, trans_b, size):
    a, b, c, expected = operands("float16", "float32", trans_b, size)
    with tvm.transform.PassContext(config={"tir.use_async_copy": True}):
        got = run(mma_product("float16", "float32", trans_b, size=size, marks=marks), a, b, c)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("func, first", [(programs.ring, (9, 0)), (programs.arrivals, (8, 0))])
def test_barriers(func, first):
    if tuple(map(int, tvm.cuda(0).compute_version.split("."))) < first:
        pytest.skip("an older GPU")
    shape = (4, 64) if func is programs.ring else (32,)
    a = np.random.default_rng(0).normal(size=shape).astype("float32")
    np.testing.assert_array_equal(run(func, a, np.full_like(a, np.nan)), a[..., ::-1])
