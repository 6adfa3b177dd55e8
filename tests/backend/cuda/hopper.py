# SPDX-License-Identifier: Apache-2.0
"""Programs with instructions of sm_90a, written by hand."""

from tvm.script import tir as T


@T.prim_func
def product(A: T.Buffer((64, 256), "float16"), B: T.Buffer((256, 128), "float16"),
            C: T.Buffer((64, 128), "float32")):  # fmt: skip
    """One warpgroup multiplies tiles that the copy engine brings, one after the other."""
    A_map: T.handle("tensormap") = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.handle("tensormap") = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data,
                  256, 64, 512, 64, 64, 1, 1, 0, 3, 0, 0)  # fmt: skip
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float16", 2, B.data,
                  128, 256, 256, 64, 64, 1, 1, 0, 3, 0, 0)  # fmt: skip
    for t in T.thread_binding(128, "threadIdx.x"):
        with T.block("product"):
            T.reads(A[0:64, 0:256], B[0:256, 0:128])
            T.writes(C[0:64, 0:128])
            S = T.alloc_buffer((3, 64, 64), "float16", scope="shared.dyn")
            D = T.alloc_buffer((64, 128), "float32", scope="wgmma.accumulator")
            with T.attr(0, "own_barriers", 1):
                T.create_barriers(1)
                if t == 0:
                    T.ptx_init_barrier_thread_count(0, 1)
                    T.ptx_fence_barrier_init()
                T.tvm_storage_sync("shared.dyn")
                for step in range(4):
                    if t == 0:
                        T.ptx_arrive_barrier_expect_tx(0, 3 * 64 * 64 * 2)
                        T.ptx_cp_async_bulk_tensor(S.data, 0, A_map, 0, 0, step * 64, 0)
                        for box in T.unroll(2):
                            T.ptx_cp_async_bulk_tensor(
                                S.data, 4096 + box * 4096, B_map, 0, 0, box * 64, step * 64
                            )
                    T.ptx_wait_barrier(0)
                    T.ptx_wgmma_fence()
                    for k in T.unroll(4):
                        T.ptx_wgmma_mma_async(
                            "m64n128k16", "fp16", "fp16", "fp32", False, True,
                            T.ptx_wgmma_descriptor(S.data, k * 16, 16, 1024, 128),
                            T.ptx_wgmma_descriptor(S.data, 4096 + k * 1024, 8192, 1024, 128),
                            D.data, 0, step * 4 + k > 0,
                        )  # fmt: skip
                    T.ptx_wgmma_commit_group()
                    T.ptx_wgmma_wait_group(0)
                    T.tvm_storage_sync("shared.dyn")
                for i, j, k in T.grid(2, 16, 2):
                    C[t // 32 * 16 + i * 8 + t % 32 // 4, j * 8 + t % 4 * 2 + k] = D[
                        t // 32 * 16 + i * 8 + t % 32 // 4, j * 8 + t % 4 * 2 + k
                    ]


@T.prim_func
def clusters(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
    """Each row is brought once for both blocks of a cluster, half of it by each of them."""
    A_map: T.handle("tensormap") = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data,
                  64, 8, 256, 32, 1, 1, 1, 0, 0, 0, 0)  # fmt: skip
    for b in T.thread_binding(8, "blockIdx.x"):
        for c in T.thread_binding(2, "clusterCtaIdx.x"):
            for t in T.thread_binding(64, "threadIdx.x"):
                with T.block("copy"):
                    T.reads(A[0:8, 0:64])
                    T.writes(B[0:8, 0:64])
                    S = T.alloc_buffer((64,), "float32", scope="shared.dyn")
                    with T.attr(0, "own_barriers", 1):
                        T.create_barriers(1)
                        if t == 0:
                            T.ptx_init_barrier_thread_count(0, 1)
                            T.ptx_fence_barrier_init()
                            T.ptx_arrive_barrier_expect_tx(0, 256)
                        T.ptx_barrier_cluster()
                        if t == 0:
                            T.ptx_cp_async_bulk_tensor(S.data, c * 32, A_map, 0, 3, c * 32, b // 2)
                        T.ptx_wait_barrier(0)
                        B[b, t] = S[t] + T.Cast("float32", c)
                        T.ptx_barrier_cluster()
