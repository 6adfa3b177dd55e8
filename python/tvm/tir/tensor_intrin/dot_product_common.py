# SPDX-License-Identifier: Apache-2.0
"""The dot product of four bytes, an instruction of several GPUs."""

from tvm.script import tir as T

from ..function import TensorIntrin


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
