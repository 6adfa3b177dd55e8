# SPDX-License-Identifier: Apache-2.0
"""Kernels on a GPU, against NumPy."""

import math

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import te, tir, topi

RNG = np.random.default_rng(0)


def run(func, *arrays, target="cuda"):
    """The last array as the function leaves it; it is poisoned before."""
    mod = tvm.compile(func, target)
    device = tvm.cuda(0)
    tensors = [tvm.runtime.tensor(a, device) for a in arrays]
    mod(*tensors)
    return tensors[-1].numpy()


def poison(shape, dtype):
    return np.full(shape, 77, dtype)


def unary(f, shape, dtype):
    A = te.placeholder(shape, dtype, name="A")
    return te.create_prim_func([A, te.compute(shape, lambda *i: f(A(*i)), name="B")])


@pytest.mark.parametrize("n", [1, 7, 255, 256, 1000, 1 << 20, (1 << 20) + 3])
def test_sizes(n):
    a = RNG.standard_normal(n).astype("float32")
    b = run(unary(lambda x: x * 2 + 1, (n,), "float32"), a, poison(n, "float32"))
    np.testing.assert_allclose(b, a * 2 + 1, rtol=1e-6)


FUNCTIONS = {
    "exp": np.exp, "tanh": np.tanh, "log": np.log, "sqrt": np.sqrt, "sin": np.sin,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "floor": np.floor, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-6), ("float16", 1e-3), ("float64", 1e-12)])
def test_functions(name, dtype, rtol):
    a = np.abs(RNG.standard_normal(4099)).astype(dtype) + np.asarray(0.01, dtype)
    b = run(unary(getattr(tir, name), a.shape, dtype), a, poison(a.shape, dtype))
    expected = FUNCTIONS[name](a.astype("float64"))
    np.testing.assert_allclose(b.astype("float64"), expected, rtol=rtol, atol=rtol)


NATIVE = {"exp": np.exp, "log": np.log, "log2": np.log2, "tanh": np.tanh}
NATIVE["sigmoid"] = lambda x: 1 / (1 + np.exp(-x))
NATIVE["erf"] = np.vectorize(math.erf)


@pytest.mark.parametrize("name", NATIVE)
def test_functions_are_off_by_two_ulp_at_most(name):
    bits = RNG.integers(0, 1 << 32, 1 << 16, dtype="uint64").astype("uint32")
    special = [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 88.7, -103.9]
    near = RNG.uniform(-30, 30, 1 << 16)
    a = np.concatenate([bits.view("float32"), near.astype("float32"), np.float32(special)])
    b = run(unary(getattr(tir, name), a.shape, "float32"), a, poison(a.shape, "float32"))
    with np.errstate(all="ignore"):
        expected = NATIVE[name](a.astype("float64"))
        rounded = expected.astype("float32")
        ulp = np.spacing(np.abs(rounded)).astype("float64")
        same = (b == rounded) | (np.isnan(b) & np.isnan(rounded))
        assert (same | (np.abs(b - expected) <= 2 * ulp)).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats(dtype):
    numpy = np.dtype(getattr(ml_dtypes, dtype))
    a = RNG.standard_normal(4096).astype(numpy)
    b = run(unary(lambda x: x + x, a.shape, dtype), a, np.zeros(4096, numpy))
    np.testing.assert_array_equal(
        b.astype("float32"), (a.astype("float32") * 2).astype(numpy).astype("float32")
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_integers(dtype):
    a = RNG.integers(0, 100, 1000).astype(dtype)
    A = te.placeholder(a.shape, dtype, name="A")
    B = te.placeholder(a.shape, dtype, name="B")
    C = te.compute(a.shape, lambda i: tir.truncdiv(A[i], B[i]) + A[i] * B[i], name="C")
    b = RNG.integers(0, 5, 1000).astype(dtype)  # with zeros
    c = run(te.create_prim_func([A, B, C]), a, b, poison(a.shape, dtype))
    quotient = np.where(b == 0, 0, a // np.maximum(b, 1))
    np.testing.assert_array_equal(c, (quotient + a * b).astype(dtype))


def test_special_values():
    a = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3e38, -1.0] * 8, "float32")
    func = unary(lambda x: tir.max(x, tir.const(0.0, "float32")), a.shape, "float32")
    np.testing.assert_array_equal(run(func, a, poison(a.shape, "float32")), np.maximum(a, 0))
    func = unary(lambda x: x.astype("int32"), a.shape, "float32")
    b = run(func, a, poison(a.shape, "int32"))
    low, high = -(2**31), 2**31 - 1
    assert b[:8].tolist() == [0, high, low, 0, 0, 0, high, -1]


@pytest.mark.parametrize("shape", [(1, 32), (64, 1024), (3, 100000), (1000, 7), (5, 1)])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions(shape, axis):
    A = te.placeholder(shape, name="A")
    k = te.reduce_axis((0, shape[axis]), name="k")
    other = shape[1 - axis]
    at = (lambda i: A[k, i]) if axis == 0 else (lambda i: A[i, k])
    for reduce, numpy in [(te.sum, np.sum), (te.max, np.max)]:
        B = te.compute((other,), lambda i, f=reduce: f(at(i), axis=k), name="B")
        a = RNG.standard_normal(shape).astype("float32")
        b = run(te.create_prim_func([A, B]), a, poison(other, "float32"))
        np.testing.assert_allclose(b, numpy(a.astype("float64"), axis), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_small_floats_do_not_stand_still(axis, dtype):
    numpy = np.dtype(getattr(ml_dtypes, dtype, dtype))
    A = te.placeholder((8192, 8192), dtype, name="A")
    a = np.ones((8192, 8192), numpy)
    got = run(te.create_prim_func([A, topi.sum(A, axis=axis)]), a, np.zeros(8192, numpy))
    np.testing.assert_array_equal(got.astype("float32"), 8192)
    a *= numpy.type(1000)  # whose sum is beyond float16
    got = run(te.create_prim_func([A, topi.mean(A, axis=axis)]), a, np.zeros(8192, numpy))
    np.testing.assert_array_equal(got.astype("float32"), 1000)


LINES = [(64, 512), (4096, 4096), (768, 3072), (14336, 1024), (40, 70000)]


@pytest.mark.parametrize("n, k", [(1000, 2048), (999, 2047), (64, 100), *LINES])
def test_a_vector_times_a_matrix_of_small_floats(n, k):
    a, b, d = (RNG.standard_normal(s).astype("float16") for s in ((1, k), (k, n), (n,)))
    A, B, D = (
        te.placeholder(x.shape, "float16", name=name)
        for x, name in zip((a, b, d), "ABD", strict=True)
    )
    func = te.create_prim_func([A, B, D, topi.add(topi.matmul(A, B), D)])
    got = run(func, a, b, d, poison((1, n), "float16"))
    expected = a.astype("float64") @ b.astype("float64") + d
    assert np.linalg.norm(got - expected) <= 1e-3 * np.linalg.norm(expected)


@pytest.mark.parametrize("shape, axis", [((8, 4096), 1), ((600, 3), 0), ((300, 7), 1)])
def test_where_the_largest_of_many_is(shape, axis):
    a = RNG.standard_normal(shape).astype("float32")
    A = te.placeholder(shape, name="A")
    expected = a.argmax(axis).astype("int32")
    got = run(te.create_prim_func([A, topi.argmax(A, axis)]), a, poison(expected.shape, "int32"))
    np.testing.assert_array_equal(got, expected)


SHAPES = [
    ((300, 64), 1), ((64, 1024), 1), ((3, 100000), 1), ((40000, 96), 1), ((7, 33), 1),
    ((4096, 8), 0), ((100000, 3), 0), ((4096, 1024), 0), ((256, 96), 0), ((3, 512, 64), 1),
    ((2, 33, 65), (1, 2)), ((700, 900), (0, 1)), ((5, 1), 1),
]  # fmt: skip


@pytest.mark.parametrize("shape, axis", SHAPES)
@pytest.mark.parametrize("dtype, rtol", [("float32", 3e-6), ("float16", 1e-3)])
def test_what_is_made_of_sums(shape, axis, dtype, rtol):
    A = te.placeholder(shape, dtype, name="A")
    sums = topi.sum(A, axis)
    bias = te.placeholder(sums.shape, dtype, name="bias")
    mean = te.compute(sums.shape, lambda *i: sums(*i) / 64 - bias(*i), name="mean")
    a = (RNG.random(shape) / 8).astype(dtype)
    expected = a.sum(axis, dtype="float64") / 64
    b = (expected / 2).astype(dtype)
    got = run(te.create_prim_func([A, bias, mean]), a, b, poison(expected.shape, dtype))
    np.testing.assert_allclose(got.astype("float64"), expected - b, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("shape", [(16, 1000), (100, 4096), (7, 33)])
def test_softmax(shape):
    from tests.backend.cuda.test_codegen import softmax

    a = RNG.standard_normal(shape).astype("float32")
    b = run(softmax(*shape), a, poison(shape, "float32"))
    e = np.exp(a.astype("float64") - a.max(1, keepdims=True))
    np.testing.assert_allclose(b, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("n", [64, 256, 100])
@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-4), ("float16", 2e-2)])
def test_products(n, dtype, rtol):
    from tests.backend.cuda.test_codegen import matmul

    a, b = (RNG.standard_normal((n, n)).astype(dtype) for _ in range(2))
    c = run(matmul(n, dtype), a, b, poison((n, n), dtype))
    expected = a.astype("float64") @ b.astype("float64")
    np.testing.assert_allclose(c.astype("float64"), expected, rtol=rtol, atol=rtol * np.sqrt(n))


def test_two_stages_with_memory_between():
    A = te.placeholder((1000, 300), name="A")
    k = te.reduce_axis((0, 300), name="k")
    S = te.compute((1000,), lambda i: te.sum(A[i, k], axis=k), name="S")
    k2 = te.reduce_axis((0, 1000), name="k2")
    B = te.compute((1,), lambda _: te.sum(S[k2] * S[k2], axis=k2), name="B")
    a = RNG.standard_normal((1000, 300)).astype("float32")
    b = run(te.create_prim_func([A, B]), a, poison(1, "float32"))
    np.testing.assert_allclose(b[0], (a.astype("float64").sum(1) ** 2).sum(), rtol=1e-4)


def test_dynamic_sizes():
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    mod = tvm.compile(
        te.create_prim_func([A, te.compute((n,), lambda i: A[i] + 1, name="B")]), "cuda"
    )
    for size in (0, 1, 1000, 12345):
        a = RNG.standard_normal(size).astype("float32")
        b = tvm.runtime.tensor(poison(size, "float32"), tvm.cuda(0))
        mod(tvm.runtime.tensor(a, tvm.cuda(0)), b)
        np.testing.assert_array_equal(b.numpy(), a + 1)


def test_export(tmp_path):
    func = unary(lambda x: x * 3, (1000,), "float32")
    tvm.compile(func, "cuda").export_library(str(tmp_path / "k.so"))
    mod = tvm.runtime.load_module(str(tmp_path / "k.so"))
    a = RNG.standard_normal(1000).astype("float32")
    x, y = (tvm.runtime.tensor(v, tvm.cuda(0)) for v in (a, poison(1000, "float32")))
    mod(x, y)
    np.testing.assert_array_equal(y.numpy(), a * 3)


def test_wrong_arguments_do_no_harm():
    mod = tvm.compile(unary(lambda x: x * 3, (1000,), "float32"), "cuda")
    cpu = tvm.runtime.tensor(np.zeros(1000, "float32"))
    gpu = tvm.runtime.tensor(np.zeros(1000, "float32"), tvm.cuda(0))
    with pytest.raises(ValueError, match="expected argument A on device type 2, got 1"):
        mod(cpu, gpu)
    mod(gpu, gpu)


def test_memory_runs_out():
    total = tvm.cuda(0).total_global_memory
    with pytest.raises(MemoryError, match=rf"cuda:0: cannot allocate {2 * total} bytes: .* in use"):
        tvm.runtime.empty((2 * total,), "uint8", tvm.cuda(0))
    assert tvm.runtime.tensor(np.ones(4, "float32"), tvm.cuda(0)).numpy().sum() == 4


def test_properties():
    gpu = tvm.cuda(0)
    assert gpu.exist and gpu.warp_size == 32 and gpu.max_threads_per_block == 1024
    assert len(gpu.max_thread_dimensions) == 3 and gpu.multi_processor_count > 0
    assert gpu.total_global_memory >= gpu.available_global_memory > 0
    assert gpu.compute_version.count(".") == 1 and gpu.driver_version >= 12000
    assert not tvm.cuda(63).exist
