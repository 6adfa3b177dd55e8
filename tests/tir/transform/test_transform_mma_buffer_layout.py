# SPDX-License-Identifier: Apache-2.0
"""Matrices of m16n8k8 become registers: a product of one warp, scheduled with those intrinsics."""

import numpy as np
import pytest
import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt
from tvm.tir.tensor_intrin import cuda  # noqa: F401  (registers them)

from tests.backend.cuda.kernels import lowered, run
from tests.backend.cuda.products import product
from tests.backend.cuda.test_codegen import needs_nvrtc, text_of


def small_product(out="float32"):
    """32 x 32 results of one warp: tiles of 16 x 8, 8 deep."""
    sch = tvm.tir.Schedule(product(32, 32, 16, "float16"))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    unit = sch.split(i, [1, None])[0]
    sch.bind(unit, "blockIdx.x")
    i = sch.get_loops(block)[1]
    i0, i1 = sch.split(i, [None, 16])
    j0, j1 = sch.split(j, [None, 8])
    k0, k1 = sch.split(k, [None, 8])
    sch.reorder(unit, k0, i0, j0, i1, j1, k1)
    for operand, (name, shape) in enumerate((("A", (32, 8)), ("B", (8, 32)))):
        shared = sch.cache_read(block, operand, "shared.dyn")
        sch.compute_at(shared, unit)
        fused = sch.fuse(*sch.get_loops(shared)[-2:])
        _, x = sch.split(fused, [None, 32])
        sch.bind(x, "threadIdx.x")
        matrix = sch.cache_read(block, operand, f"m16n8k8.matrix{name}")
        sch.compute_at(matrix, k0)
        a, b = sch.get_loops(matrix)[-2:]
        a0, a1 = sch.split(a, [None, shape[0]])
        b0, b1 = sch.split(b, [None, shape[1]])
        sch.reorder(a0, b0, a1, b1)
        sch.tensorize(a1, f"mma_load_m16n8k8_f16_{name}_shared_dyn")
    staged = sch.cache_write(block, 0, "shared.dyn")
    sums = sch.cache_write(block, 0, "m16n8k8.matrixC")
    sch.reverse_compute_at(sums, unit)
    sch.reverse_compute_at(staged, unit)
    a, b = sch.get_loops(sums)[-2:]
    a0, a1 = sch.split(a, [None, 16])
    b0, b1 = sch.split(b, [None, 8])
    sch.reorder(a0, b0, a1, b1)
    sch.tensorize(a1, "mma_store_m16n8k8_f32_global")
    fused = sch.fuse(*sch.get_loops(staged)[-2:])
    _, x = sch.split(fused, [None, 32])
    sch.bind(x, "threadIdx.x")
    start = sch.decompose_reduction(block, k0)
    sch.tensorize(sch.get_loops(start)[-2], "mma_init_m16n8k8_f32")
    sch.tensorize(i1, "mma_sync_m16n8k8_f16f16f32")
    return sch.mod["main"]


def test_a_product_runs():
    mod = lowered(small_product())
    text = mod.script()
    assert "m16n8k8.matrix" not in text and '"m16n8k8"' in text
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(32, 16)).astype("float16"), rng.normal(size=(16, 32)).astype("float16")
    got = run(mod, a, b, np.full((32, 32), np.nan, "float32"), threads="random", seed=3)
    np.testing.assert_allclose(got, a.astype("float64") @ b.astype("float64"), rtol=1e-5, atol=1e-5)


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_it_compiles(arch):
    assert "mma.sync.aligned.m16n8k8" in text_of(small_product(), arch)


def test_sizes_and_elements_that_have_no_registers():
    def with_buffer(shape, part, access):
        @T.prim_func
        def func(A: T.Buffer((64, 64), "float16")):
            for _ in T.thread_binding(32, "threadIdx.x"):
                with T.block("root"):
                    T.reads()
                    T.writes()
                    M = T.alloc_buffer(shape, "float16", scope="m16n8k8.matrix" + part)
                    if access:
                        M[0, 0] = A[0, 0]
                    else:
                        T.call_extern("int32", "f", M.data)

        return tvm.IRModule({"main": func})

    with pytest.raises(ValueError, match="of scope m16n8k8.matrixA with two dimensions, multiples"):
        tt.TransformMmaBufferLayout()(with_buffer((16, 8), "A", False))
    with pytest.raises(ValueError, match="M to be loaded by ptx_ldmatrix and used by ptx_mma"):
        tt.TransformMmaBufferLayout()(with_buffer((8, 32), "B", True))
