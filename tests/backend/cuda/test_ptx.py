# SPDX-License-Identifier: Apache-2.0
"""Operators of PTX in programs: printed, parsed, generated, compiled, run by the interpreter."""

import numpy as np
import pytest
import tvm
from tvm.script import tir as T

from tests.backend.cuda.kernels import lowered, run
from tests.backend.cuda.test_codegen import kernel_of, needs_nvrtc, text_of, text_only  # noqa: F401


@T.prim_func
def ring(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 64), "float32")):
    """Rows of A reversed, brought by copies that arrive at a barrier: two of them in turn."""
    for _ in T.thread_binding(1, "blockIdx.x"):
        for t in T.thread_binding(64, "threadIdx.x"):
            with T.block("root"):
                T.reads(A[0:4, 0:64])
                T.writes(B[0:4, 0:64])
                S = T.alloc_buffer((2, 64), scope="shared")
                with T.attr(0, "own_barriers", 1):
                    T.create_barriers(2)
                    if t == 0:
                        for i in range(2):
                            T.ptx_init_barrier_thread_count(i, 1)
                    T.tvm_storage_sync("shared")
                    for i in range(4):
                        if t == 0:
                            T.ptx_arrive_barrier_expect_tx(i % 2, 256)
                            T.ptx_cp_async_bulk(
                                "float32", S.data, i % 2 * 64, A.data, i * 64, 256, i % 2
                            )
                        T.ptx_wait_barrier(i % 2)
                        B[i, t] = S[i % 2, 63 - t]
                        T.tvm_storage_sync("shared")


@T.prim_func
def arrivals(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    """Small copies of all threads, which arrive at one barrier."""
    for _ in T.thread_binding(1, "blockIdx.x"):
        for t in T.thread_binding(32, "threadIdx.x"):
            with T.block("root"):
                T.reads(A[0:32])
                T.writes(B[0:32])
                S = T.alloc_buffer((32,), scope="shared")
                with T.attr(0, "own_barriers", 1):
                    T.create_barriers(1)
                    if t == 0:
                        T.ptx_init_barrier_thread_count(0, 32)
                    T.tvm_storage_sync("shared")
                    T.ptx_cp_async("float32", S.data, t, A.data, t, 4)
                    T.ptx_cp_async_barrier(0)
                    T.ptx_arrive_barrier(0)
                    T.ptx_wait_barrier(0)
                    B[t] = S[31 - t]


def test_barriers_in_text(text_only):  # noqa: F811
    text = kernel_of(text_of(ring))
    assert "__shared__ __align__(8) uint64_t barriers[2];" in text
    assert "mbarrier.init.shared.b64 [%1], %0;" in text
    assert "mbarrier.arrive.expect_tx.shared.b64 s, [%1], %0;" in text
    assert "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" in text
    assert "tvm_wait_for_barrier(" in text and "phases ^= UINT64_C(1) << " in text
    assert "cp.async.mbarrier.arrive.shared.b64 [%0];" in kernel_of(text_of(arrivals, "sm_80"))


@needs_nvrtc
@pytest.mark.parametrize("func, arch", [(ring, "sm_90"), (ring, "sm_120"), (arrivals, "sm_80")])
def test_barriers_compile(func, arch):
    assert "barrier" in text_of(func, arch)


@pytest.mark.parametrize("func", [ring, arrivals])
def test_barriers_run(func):
    mod = lowered(func, "sm_90")
    a = np.random.default_rng(0).normal(size=(4, 64) if func is ring else (32,)).astype("float32")
    for seed in range(4):
        got = run(mod, a, np.full_like(a, np.nan), threads="random", seed=seed)
        np.testing.assert_array_equal(got, a[..., ::-1])


def test_nobody_arrives():
    @T.prim_func
    def waits(A: T.Buffer((32,), "float32")):
        t = T.launch_thread("threadIdx.x", 32)
        T.create_barriers(1)
        if t == 0:
            T.ptx_init_barrier_thread_count(0, 33)
        T.tvm_storage_sync("shared")
        T.ptx_arrive_barrier(0)
        T.ptx_wait_barrier(0)
        A[t] = T.float32(1)

    with pytest.raises(ValueError, match="expected all threads of a block to meet at a barrier"):
        tvm.tir.interpret(waits)(np.zeros(32, "float32"))


def test_barriers_are_made_first(text_only):  # noqa: F811
    @T.prim_func
    def func(A: T.Buffer((32,), "float32")):
        t = T.launch_thread("threadIdx.x", 32)
        T.ptx_arrive_barrier(0)
        A[t] = T.float32(1)

    with pytest.raises(Exception, match="expected create_barriers before the use of one"):
        text_of(func)


@T.prim_func
def sparse(A: T.Buffer((32, 4), "float16"), B: T.Buffer((32, 4), "float16"),
           M: T.Buffer((32,), "uint32"), C: T.Buffer((32, 4), "float32")):  # fmt: skip
    for _ in T.thread_binding(1, "blockIdx.x"):
        for t in T.thread_binding(32, "threadIdx.x"):
            with T.block("root"):
                T.reads(A[0:32, 0:4], B[0:32, 0:4], M[0:32])
                T.writes(C[0:32, 0:4])
                a = T.alloc_buffer((4,), "float16", scope="local")
                b = T.alloc_buffer((4,), "float16", scope="local")
                c = T.alloc_buffer((4,), "float32", scope="local")
                m = T.alloc_buffer((1,), "uint32", scope="local")
                m[0] = M[t]
                for i in range(4):
                    a[i] = A[t, i]
                    b[i] = B[t, i]
                    c[i] = T.float32(0)
                T.ptx_mma_sp(
                    "float32", "m16n8k16", "row", "col", "fp16", "fp16", "fp32", a.data, 0,
                    b.data, 0, c.data, 0, m.data, 0, 0, False,
                )  # fmt: skip
                for i in range(4):
                    C[t, i] = c[i]


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_sparse_products_compile(arch):
    assert "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in text_of(sparse, arch)


def bits(operator):
    @T.prim_func
    def func(A: T.Buffer((32, 4), "int32"), C: T.Buffer((32, 4), "int32")):
        for _ in T.thread_binding(1, "blockIdx.x"):
            for t in T.thread_binding(32, "threadIdx.x"):
                with T.block("root"):
                    T.reads(A[0:32, 0:4])
                    T.writes(C[0:32, 0:4])
                    a = T.alloc_buffer((4,), "int32", scope="local")
                    c = T.alloc_buffer((4,), "int32", scope="local")
                    for i in range(4):
                        a[i] = A[t, i]
                        c[i] = 0
                    T.ptx_mma(
                        "int32", "m16n8k256", "row", "col", "int1", "int1", "int32", a.data, 0,
                        a.data, 0, c.data, 0, False, operator,
                    )  # fmt: skip
                    for i in range(4):
                        C[t, i] = c[i]

    return func


@needs_nvrtc
@pytest.mark.parametrize("operator, arch", [("xor", "sm_80"), ("and", "sm_80")])
def test_products_of_bits_compile(operator, arch):
    assert f".s32.b1.b1.s32.{operator}.popc" in text_of(bits(operator), arch)


@pytest.mark.parametrize("func", [ring, arrivals, sparse, bits("xor")])
def test_programs_print_and_parse(func):
    text = func.script()
    assert "call_intrin" not in text
    back = tvm.script.from_source(text)
    tvm.ir.assert_structural_equal(back, func)
