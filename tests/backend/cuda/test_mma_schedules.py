# SPDX-License-Identifier: Apache-2.0
"""Products that a script schedules with the intrinsics of mma.sync: what the interpreter computes
with them, threads in random order and copies late, and that NVIDIA's compiler takes them."""

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm.testing.tir import mma_schedule
from tvm.tir.tensor_intrin import cuda

from tests.backend.cuda.kernels import lowered, run
from tests.backend.cuda.products import product, wmma_product
from tests.backend.cuda.test_codegen import needs_nvrtc, text_of

NUMPY = {
    "float16": np.float16, "int8": np.int8, "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip


def layouts(dtype, trans_a, trans_b):
    of_halves = cuda.shared_16x16_to_ldmatrix_32x8_layout
    if dtype == "float16":
        return [of_halves] * 3
    of_bytes = cuda.shared_16x32_to_ldmatrix_32x16_layout
    across = cuda.shared_32x16_to_ldmatrix_32x16_layout
    return [of_bytes, of_bytes if trans_b else across, of_halves]


def mma_product(dtype, out, trans_b=False, scope="shared.dyn", size=32, simple=True, marks=None):
    """A product of two warps, which lie side by side."""
    depth = 16 if dtype == "float16" else 32
    names = cuda.get_mma_intrin_group(scope, "global", dtype, out, False, trans_b, simple)
    func = product(size, size, size * 2, dtype, out, trans_b=trans_b)
    if (dtype, out) == ("float16", "float16"):
        func = halves(size, trans_b)
    sch = mma_schedule(
        func, depth, dtype, trans_b, [1, 1, 2, size // 32, 1], [1, 1, 1, size // 16, 1],
        [None, 2, 1] if depth == 16 else [None, 1, 1], *layouts(dtype, False, trans_b),
        names["load_a"], names["load_b"], names["compute"], names["init"], names["store"], scope,
    )  # fmt: skip
    if marks:
        marks(sch)
    return sch.mod["main"]


def halves(size, trans_b):
    """A product whose sums are float16."""
    from tvm import te

    A = te.placeholder((size, size * 2), "float16", name="A")
    B = te.placeholder((size, size * 2) if trans_b else (size * 2, size), "float16", name="B")
    r = te.reduce_axis((0, size * 2), name="r")
    at = (lambda j: B[j, r]) if trans_b else (lambda j: B[r, j])
    C = te.compute((size, size), lambda i, j: te.sum(A[i, r] * at(j), axis=r), name="C")
    return te.create_prim_func([A, B, C])


def operands(dtype, out, trans_b, size=32):
    rng = np.random.default_rng(0)
    shape = (size, size * 2) if trans_b else (size * 2, size)
    draw = lambda s: rng.integers(-100, 100, s) if dtype == "int8" else rng.normal(size=s)
    a, b = draw((size, size * 2)).astype(NUMPY[dtype]), draw(shape).astype(NUMPY[dtype])
    wide = np.int64 if dtype == "int8" else np.float64
    right = b.astype(wide).T if trans_b else b.astype(wide)
    return a, b, np.full((size, size), -1, out), a.astype(wide) @ right


PRODUCTS = [
    ("float16", "float32"),
    ("float16", "float16"),
    ("int8", "int32"),
    ("float8_e4m3fn", "float32"),
    ("float8_e5m2", "float32"),
]


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("dtype, out", PRODUCTS)
def test_intrinsics_compute_products(dtype, out, trans_b):
    a, b, c, expected = operands(dtype, out, trans_b)
    mod = lowered(mma_product(dtype, out, trans_b), "sm_89")
    assert "tir.ptx_mma" in mod.script() or "T.ptx_mma" in mod.script()
    got = run(mod, a, b, c, threads="random", seed=1)
    tolerance = {"float32": 1e-5, "float16": 0.05, "int32": 0}[out]
    np.testing.assert_allclose(got.astype("float64"), expected, rtol=tolerance, atol=tolerance)


def test_one_operator_stores_a_tile():
    a, b, c, expected = operands("float16", "float32", True)
    mod = lowered(mma_product("float16", "float32", True, "shared", simple=False))
    assert "T.mma_store(" in mod.script()
    np.testing.assert_allclose(run(mod, a, b, c), expected, rtol=1e-5, atol=1e-5)


def swizzled(sch):
    for name in ("A_shared_dyn", "A_shared_dyn_warp_o", "B_shared_dyn", "B_shared_dyn_warp_o"):
        sch.annotate(sch.get_block(name), "permuted_layout", "g2s_A")


def in_stages(sch):
    swizzled(sch)
    loop = sch.get_loops(sch.get_block("C_update_o"))[3]
    sch.annotate(loop, "software_pipeline_stage", [0, 0, 1])
    sch.annotate(loop, "software_pipeline_order", [0, 1, 2])
    sch.annotate(loop, "software_pipeline_async_stages", [0])


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("marks", [swizzled, in_stages])
def test_swizzled_tiles_in_stages(marks, trans_b):
    a, b, c, expected = operands("float16", "float32", trans_b)
    func = mma_product("float16", "float32", trans_b, marks=marks)
    mod = lowered(func, config={"tir.use_async_copy": True})
    text = mod.script()
    assert "T.bitwise_xor(" in text and ("ptx_cp_async" in text) == (marks is in_stages)
    for seed in range(3):
        got = run(mod, a, b, c, threads="random", seed=seed)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype, out", [("float16", "float32"), ("int8", "int32")])
@pytest.mark.parametrize("trans_b", [False, True])
def test_fragments_of_wmma_compute_products(dtype, out, trans_b):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, (64, 64)).astype(dtype) for _ in "ab")
    right = b.T if trans_b else b
    got = run(
        lowered(wmma_product(64, dtype, out, trans_b)), a, b, np.full((64, 64), -1, out),
        threads="random",
    )  # fmt: skip
    np.testing.assert_array_equal(got, a.astype("int64") @ right.astype("int64"))


@needs_nvrtc
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("dtype, out", PRODUCTS)
def test_intrinsics_compile(dtype, out, trans_b):
    assert "mma.sync" in text_of(mma_product(dtype, out, trans_b), "sm_90")


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120"])
def test_stages_compile(arch):
    func = mma_product("float16", "float32", marks=in_stages)
    with tvm.transform.PassContext(config={"tir.use_async_copy": True}):
        text = text_of(func, arch)
    assert "cp.async.cg.shared.global" in text and "cp.async.wait_group" in text
