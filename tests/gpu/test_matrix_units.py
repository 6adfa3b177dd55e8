# SPDX-License-Identifier: Apache-2.0
"""Products on matrix units, against float64."""

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import te

from tests.backend.cuda.products import product, wmma_product
from tests.gpu.test_kernels import run

RNG = np.random.default_rng(1)
NUMPY = {"bfloat16": np.dtype(ml_dtypes.bfloat16)}
BOUND = {"float32": 3e-6, "float16": 1e-3, "bfloat16": 5e-3, "int32": 0}


def random(shape, dtype):
    numpy = NUMPY.get(dtype, dtype)
    if "int" in dtype:
        return RNG.integers(-100 if dtype == "int8" else 0, 100, shape).astype(numpy)
    return RNG.standard_normal(shape).astype(numpy)


def check(m, n, k, dtype="float16", out="float32", batch=None, last=None, **trans):
    lead = () if batch is None else (batch,)
    ta, tb = trans.get("trans_a"), trans.get("trans_b")
    a = random(lead + ((k, m) if ta else (m, k)), dtype)
    b = random(lead + ((n, k) if tb else (k, n)), dtype)
    d = [random((n,), dtype)] if last else []
    c = np.full((*lead, m, n), 77, NUMPY.get(out, out))
    got = run(product(m, n, k, dtype, out, batch=batch, last=last, **trans), a, b, *d, c)
    x, y = a.astype("float64"), b.astype("float64")
    expected = (x.swapaxes(-1, -2) if ta else x) @ (y.swapaxes(-1, -2) if tb else y)
    if last:
        expected = np.maximum(expected + d[0].astype("float64"), 0)
    error = np.linalg.norm(got.astype("float64") - expected)
    # Matrix units cut off a sum of float32 after each step of 16: half a unit of it, on average.
    cut = k / 16 * 2**-24 if out == "float32" else 0
    assert error <= max(BOUND[out], cut) * np.linalg.norm(expected)


@pytest.mark.parametrize(
    "m, n, k",
    [(256, 256, 128), (2048, 512, 256), (100, 200, 72), (33, 65, 17), (7, 1000, 513), (2, 64, 8),
     (130, 258, 66), (16, 4096, 512), (129, 257, 65)],
)  # fmt: skip
@pytest.mark.parametrize("dtype, out", [("float16", "float32"), ("bfloat16", "bfloat16")])
def test_sizes(m, n, k, dtype, out):
    check(m, n, k, dtype, out)


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("m, n, k", [(384, 512, 192), (130, 66, 98), (31, 33, 35)])
def test_transposed(m, n, k, trans_a, trans_b):
    check(m, n, k, trans_a=trans_a, trans_b=trans_b)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_bytes(dtype):
    check(256, 256, 256, dtype, "int32", trans_b=True)
    check(100, 36, 144, dtype, "int32", trans_b=True)
    check(33, 35, 37, dtype, "int32", trans_b=True)


def test_batches_and_last_steps():
    check(100, 100, 100, batch=5, last="bias")
    check(512, 512, 512, "bfloat16", "bfloat16", last="bias")
    check(64, 64, 64, batch=70000 // 64)


@pytest.mark.parametrize("m, n, k", [(128, 256, 4096), (33, 65, 3000), (100, 48, 2049)])
@pytest.mark.parametrize("dtype, out", [("float16", "float16"), ("float32", "float32")])
def test_long_sums_in_parts(m, n, k, dtype, out):
    check(m, n, k, dtype, out, last="bias")
    check(m, n, k, dtype, out, batch=2, trans_b=True)


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("dtype, out", [("float16", "float32"), ("int8", "int32")])
def test_fragments_of_wmma(dtype, out, trans_b):
    a, b = random((128, 128), dtype), random((128, 128), dtype)
    got = run(wmma_product(128, dtype, out, trans_b), a, b, np.full((128, 128), 77, out))
    expected = a.astype("float64") @ (b.T if trans_b else b).astype("float64")
    assert np.linalg.norm(got - expected) <= BOUND[out] * np.linalg.norm(expected)


def test_sums_over_nothing():
    got = run(product(20, 40, 0, "float16"), np.zeros((20, 0), "float16"),
              np.zeros((0, 40), "float16"), np.full((20, 40), 77, "float32"))  # fmt: skip
    assert (got == 0).all()


def test_special_values():
    a, b = np.zeros((64, 64), "float16"), np.zeros((64, 64), "float16")
    a[3, 5], b[5, 7], a[9, 9], b[9, 9] = np.inf, 1, 1, np.nan
    got = run(product(64, 64, 64, "float16"), a, b, np.full((64, 64), 77, "float32"))
    with np.errstate(invalid="ignore"):
        expected = a.astype("float32") @ b.astype("float32")
    np.testing.assert_array_equal(got, expected)


def test_sizes_that_are_not_known():
    m, n, k = te.size_var("m"), te.size_var("n"), te.size_var("k")
    mod = tvm.compile(product(m, n, k, "float16"), "cuda")
    device = tvm.cuda(0)
    for shape in [(128, 256, 64), (100, 200, 72), (33, 65, 17), (1, 8, 8)]:
        m, n, k = shape
        a, b = random((m, k), "float16"), random((k, n), "float16")
        c = tvm.runtime.tensor(np.full((m, n), 77, "float32"), device)
        mod(tvm.runtime.tensor(a, device), tvm.runtime.tensor(b, device), c)
        expected = a.astype("float64") @ b.astype("float64")
        assert np.linalg.norm(c.numpy() - expected) <= 1e-6 * np.linalg.norm(expected)


def test_factors_that_are_not_aligned():
    torch = pytest.importorskip("torch")
    mod = tvm.compile(product(256, 256, 128, "float16"), "cuda")
    base = torch.randn(256 * 128 + 8, device="cuda", dtype=torch.float16)
    for shift in (0, 1, 4):
        a, b = (base[shift : shift + 256 * 128].view(s) for s in ((256, 128), (128, 256)))
        c = torch.full((256, 256), 77.0, device="cuda")
        mod(a, b, c)
        expected = a.double() @ b.double()
        assert (c.double() - expected).norm() <= 1e-6 * expected.norm()


@pytest.mark.parametrize("how, bound", [("tf32", 6e-4), ("3xtf32", 3e-6)])
@pytest.mark.parametrize(
    "m, n, k", [(256, 512, 384), (100, 200, 72), (33, 65, 17), (128, 64, 4096)]
)
def test_float32_in_other_ways(how, bound, m, n, k):
    for trans_a, trans_b in [(False, False), (False, True), (True, False), (True, True)]:
        a = random((k, m) if trans_a else (m, k), "float32")
        b = random((n, k) if trans_b else (k, n), "float32")
        func = product(m, n, k, "float32", trans_a=trans_a, trans_b=trans_b)
        with tvm.transform.PassContext(config={"tir.float32_products": how}):
            got = run(func, a, b, np.full((m, n), np.nan, "float32"))
        x, y = a.astype("float64"), b.astype("float64")
        expected = (x.T if trans_a else x) @ (y.T if trans_b else y)
        error = np.linalg.norm(got - expected) / np.linalg.norm(expected)
        assert (bound / 100 if how == "tf32" else 0) <= error <= bound
