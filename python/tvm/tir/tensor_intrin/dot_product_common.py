# SPDX-License-Identifier: Apache-2.0
"""Dot products of a few small numbers: what they compute, and the instruction of several GPUs."""

from tvm.script import tir as T

from ..function import TensorIntrin


def dot_product_desc(n_lanes, n_elems, dtype_a, dtype_b, dtype_c):
    """C[0:n_lanes] += B[0:n_lanes, 0:n_elems] . A[0:n_elems]"""

    @T.prim_func
    def dot_product(
        A: T.Buffer((n_elems,), dtype_a, offset_factor=1),
        B: T.Buffer((n_lanes, n_elems), dtype_b, offset_factor=1),
        C: T.Buffer((n_lanes,), dtype_c, offset_factor=1),
    ) -> None:
        with T.block("root"):
            T.reads(C[0:n_lanes], A[0:n_elems], B[0:n_lanes, 0:n_elems])
            T.writes(C[0:n_lanes])
            for i in T.serial(0, n_lanes):
                for k in T.serial(0, n_elems):
                    with T.block("update"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        C[vi] = C[vi] + T.cast(A[vk], dtype_c) * T.cast(B[vi, vk], dtype_c)

    return dot_product


def dot_product_of_bytes(n_lanes, dtype_a, dtype_b, dtype_c, compute):
    """(description, implementation) for four bytes. `compute(c, word, b)` gives the new C: `word`
    has the bytes of A as one int32, `b` all of B as one vector."""
    n_bytes = n_lanes * 4

    @T.prim_func
    def dot_product_impl(
        A: T.Buffer((4,), dtype_a, offset_factor=1),
        B: T.Buffer((n_lanes, 4), dtype_b, offset_factor=1),
        C: T.Buffer((n_lanes,), dtype_c, offset_factor=1),
    ) -> None:
        with T.block("root"):
            T.reads(C[0:n_lanes], A[0:4], B[0:n_lanes, 0:4])
            T.writes(C[0:n_lanes])
            word: T.int32 = T.reinterpret("int32", A[T.ramp(0, 1, 4)])
            C[T.ramp(0, 1, n_lanes)] = compute(
                C[T.ramp(0, 1, n_lanes)], word, B[0, T.ramp(0, 1, n_bytes)]
            )

    return dot_product_desc(n_lanes, 4, dtype_a, dtype_b, dtype_c), dot_product_impl


def llvm_intrin(dtype, name, *args):
    """A call of an intrinsic of LLVM without side effects."""
    return T.call_intrin(dtype, "tir.call_llvm_pure_intrin", name, *args)


def get_dp4a_intrin(dtype_a, dtype_b, dtype_c):
    """(description, implementation) of C[0] += A[0:4] . B[0:4] for the given types."""
    dtype_a4, dtype_b4 = dtype_a + "x4", dtype_b + "x4"

    @T.prim_func
    def dp4a_desc(
        A: T.Buffer((4,), dtype_a, offset_factor=1, align=4, scope="shared"),
        B: T.Buffer((4,), dtype_b, offset_factor=1, align=4, scope="shared"),
        C: T.Buffer((1,), dtype_c, offset_factor=1, align=4, scope="local"),
    ) -> None:
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            for i in range(4):
                with T.block("update"):
                    vi = T.axis.remap("R", [i])
                    C[0] = C[0] + T.cast(A[vi], dtype_c) * T.cast(B[vi], dtype_c)

    @T.prim_func
    def dp4a_impl(
        A: T.Buffer((4,), dtype_a, offset_factor=1, align=4, scope="shared"),
        B: T.Buffer((4,), dtype_b, offset_factor=1, align=4, scope="shared"),
        C: T.Buffer((1,), dtype_c, offset_factor=1, align=4, scope="local"),
    ) -> None:
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            C[0] = C[0] + T.call_pure_extern(
                dtype_c,
                "__dp4a",
                A.vload([0], dtype_a4),
                B.vload([0], dtype_b4),
                T.cast(0, dtype_c),
            )

    return dp4a_desc, dp4a_impl


DP4A_S8S8S32_INTRIN = "dp4a_s8s8s32"
DP4A_U8S8S32_INTRIN = "dp4a_u8s8s32"
DP4A_S8U8S32_INTRIN = "dp4a_s8u8s32"
DP4A_U8U8U32_INTRIN = "dp4a_u8u8u32"

for _name, _types in {
    DP4A_S8S8S32_INTRIN: ("int8", "int8", "int32"),
    DP4A_U8S8S32_INTRIN: ("uint8", "int8", "int32"),
    DP4A_S8U8S32_INTRIN: ("int8", "uint8", "int32"),
    DP4A_U8U8U32_INTRIN: ("uint8", "uint8", "uint32"),
}.items():
    TensorIntrin.register(_name, *get_dp4a_intrin(*_types), override=True)
