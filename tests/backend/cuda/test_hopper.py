# SPDX-License-Identifier: Apache-2.0
"""Instructions of sm_90a in programs: printed, parsed, generated, compiled, run by the
interpreter; and the products by default that use them."""

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm.script import tir as T

from tests.backend.cuda import hopper
from tests.backend.cuda.kernels import lowered, run
from tests.backend.cuda.products import product
from tests.backend.cuda.test_codegen import kernel_of, needs_nvrtc, text_of, text_only  # noqa: F401

NUMPY = {"bfloat16": ml_dtypes.bfloat16}


@pytest.mark.parametrize("func", [hopper.product, hopper.clusters])
def test_programs_print_and_parse(func):
    text = func.script()
    assert 'T.handle("tensormap") = T.tvm_stack_alloca("tensormap", 1)' in text
    tvm.ir.assert_structural_equal(tvm.script.from_source(text), func)


def test_text(text_only):  # noqa: F811
    text = kernel_of(text_of(hopper.product, "sm_90a"))
    assert "const __grid_constant__" in text
    assert "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes" in text
    assert "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16" in text
    text = kernel_of(text_of(hopper.clusters, "sm_90a"))
    assert ".multicast::cluster" in text and "barrier.cluster.arrive.aligned" in text


@needs_nvrtc
@pytest.mark.parametrize("func", [hopper.product, hopper.clusters])
def test_programs_compile(func):
    assert "cp.async.bulk.tensor" in text_of(func, "sm_90a")


def test_the_product_by_hand():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype("float16") for s in ((64, 256), (256, 128)))
    got = run(lowered(hopper.product, "sm_90a"), a, b, np.full((64, 128), -1, "float32"))
    np.testing.assert_array_equal(got, a.astype("int64") @ b.astype("int64"))


def test_a_wrong_description(text_only):  # noqa: F811
    @T.prim_func
    def func(A: T.Buffer((64,), "float16"), B: T.Buffer((64,), "float16")):
        for _ in T.thread_binding(128, "threadIdx.x"):
            with T.block("root"):
                T.reads(A[0:64])
                T.writes(B[0:64])
                D = T.alloc_buffer((64,), "float32", scope="local")
                T.ptx_wgmma_mma_async(
                    "m16n8k16", "fp16", "fp16", "fp32", False, True, T.uint64(0), T.uint64(0),
                    D.data, 0, True,
                )  # fmt: skip

    with pytest.raises(Exception, match="ptx_wgmma_mma_async of the shape 'm16n8k16'"):
        text_of(func, "sm_90a")


@pytest.mark.parametrize("numbers", [(0,), (6,), (2, 1, 2, 3)])
def test_descriptions_of_tensors_are_checked(numbers):
    encode = tvm.get_global_func("runtime.cuTensorMapEncodeTiled")
    with pytest.raises(ValueError, match="expected a rank of 1 to 5 and 7 \\+ 4 \\* rank"):
        encode(None, "float16", *numbers)


# ---- by default rules ----
ASKED = {"tir.warpgroup_products": True}


def default(m, n, k, dtype="float16", **more):
    return product(m, n, k, dtype, "int32" if "int" in dtype else "float32", **more)


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("m, n, k, dtype", [(64, 128, 128, "float16"), (72, 40, 136, "bfloat16")])
def test_products_by_warpgroups(m, n, k, dtype, trans_a, trans_b):
    mod = lowered(default(m, n, k, dtype, trans_a=trans_a, trans_b=trans_b), "sm_90a", ASKED)
    assert "ptx_wgmma_mma_async" in mod.script()
    rng = np.random.default_rng(0)
    numpy = NUMPY.get(dtype, dtype)
    a = rng.integers(-4, 5, (k, m) if trans_a else (m, k)).astype(numpy)
    b = rng.integers(-4, 5, (n, k) if trans_b else (k, n)).astype(numpy)
    got = run(mod, a, b, np.full((m, n), -1, "float32"), threads="random", seed=1)
    left, right = (x.astype("int64") for x in (a.T if trans_a else a, b.T if trans_b else b))
    np.testing.assert_array_equal(got, left @ right)


@pytest.mark.parametrize("size, is_taken", [(4096, True), (16, False)])
def test_warpgroups_are_taken_where_they_should_be_faster(size, is_taken):
    script = lowered(default(size, 4096, 4096), "sm_90a", {}).script()
    assert ("ptx_wgmma_mma_async" in script) == is_taken


@needs_nvrtc
@pytest.mark.parametrize(
    "func",
    [
        default(4096, 4096, 4096),
        default(4096, 4096, 4096, "bfloat16", trans_a=True, trans_b=True),
        default(512, 512, 4096, "int8", trans_b=True),
        default(64, 4096, 4096, last="bias"),
        default(512, 512, 512, batch=4),
    ],
)
def test_products_by_warpgroups_compile(func, tmp_path):
    from tests.backend.cuda.resources import binary_of, frames

    with tvm.transform.PassContext(config=ASKED):
        assert "wgmma.mma_async" in text_of(func, "sm_90a")
        assert not any(frames(binary_of(func, "sm_90a", tmp_path)))
