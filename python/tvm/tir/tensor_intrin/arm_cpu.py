# SPDX-License-Identifier: Apache-2.0
"""Intrinsics of ARM: dot products of bytes by Neon and by the dot-product extension."""

from tvm.script import tir as T

from ..function import TensorIntrin


def _desc(in_dtype, out_dtype):
    @T.prim_func
    def dot_4x4_desc(
        A: T.Buffer((4,), in_dtype, offset_factor=1),
        B: T.Buffer((4, 4), in_dtype, offset_factor=1),
        C: T.Buffer((4,), out_dtype, offset_factor=1),
    ) -> None:
        with T.block("root"):
            T.reads(C[0:4], A[0:4], B[0:4, 0:4])
            T.writes(C[0:4])
            for i in T.serial(0, 4):
                for k in T.serial(0, 4):
                    with T.block("update"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        C[vi] = C[vi] + T.cast(A[vk], out_dtype) * T.cast(B[vi, vk], out_dtype)

    return dot_4x4_desc


neon_4x4_i8i8i32_desc = _desc("int8", "int32")


# Products of bytes fit 16 bits, the sum of two of them does not always: they are widened before
# they are added.
@T.prim_func
def neon_4x4_i8i8i32_impl(
    A: T.Buffer((4,), "int8", offset_factor=1),
    B: T.Buffer((4, 4), "int8", offset_factor=1),
    C: T.Buffer((4,), "int32", offset_factor=1),
) -> None:
    with T.block("root"):
        T.reads(C[0:4], A[0:4], B[0:4, 0:4])
        T.writes(C[0:4])
        word: T.int32 = T.reinterpret("int32", A[T.ramp(0, 1, 4)])
        a = T.reinterpret("int8x8", T.broadcast(word, 2))
        low = T.call_intrin(
            "int32x4",
            "tir.call_llvm_pure_intrin",
            "llvm.aarch64.neon.saddlp",
            T.call_intrin(
                "int16x8",
                "tir.call_llvm_pure_intrin",
                "llvm.aarch64.neon.smull",
                B[0, T.ramp(0, 1, 8)],
                a,
            ),
        )
        high = T.call_intrin(
            "int32x4",
            "tir.call_llvm_pure_intrin",
            "llvm.aarch64.neon.saddlp",
            T.call_intrin(
                "int16x8",
                "tir.call_llvm_pure_intrin",
                "llvm.aarch64.neon.smull",
                B[0, T.ramp(8, 1, 8)],
                a,
            ),
        )
        C[T.ramp(0, 1, 4)] = C[T.ramp(0, 1, 4)] + T.call_intrin(
            "int32x4", "tir.call_llvm_pure_intrin", "llvm.aarch64.neon.addp", low, high
        )


def get_dotprod_intrin(in_dtype, out_dtype):
    """(description, implementation) by sdot or udot."""
    instruction = "sdot" if in_dtype == "int8" else "udot"
    in_x4, in_x16, out_x4 = in_dtype + "x4", in_dtype + "x16", out_dtype + "x4"
    name = f"llvm.aarch64.neon.{instruction}"

    @T.prim_func
    def dot_prod_impl(
        A: T.Buffer((4,), in_dtype, offset_factor=1),
        B: T.Buffer((4, 4), in_dtype, offset_factor=1),
        C: T.Buffer((4,), out_dtype, offset_factor=1),
    ) -> None:
        with T.block("root"):
            T.reads(C[0:4], A[0:4], B[0:4, 0:4])
            T.writes(C[0:4])
            word: T.int32 = T.reinterpret("int32", A.vload([0], in_x4))
            C[T.ramp(0, 1, 4)] = T.call_intrin(
                out_x4,
                "tir.call_llvm_pure_intrin",
                name,
                C[T.ramp(0, 1, 4)],
                T.reinterpret(in_x16, T.broadcast(word, 4)),
                B[0, T.ramp(0, 1, 16)],
            )

    return _desc(in_dtype, out_dtype), dot_prod_impl


ARM_DOT_4x4_i8_NEON_INTRIN = "dot_4x4_i8i8s32_neon"
ARM_DOT_4x4_i8_SDOT_INTRIN = "dot_4x4_i8i8s32_sdot"
ARM_DOT_4x4_u8_UDOT_INTRIN = "dot_4x4_u8u8u32_udot"
ARM_DOT_4x4_u8_HDOT_INTRIN = "dot_4x4_u8u8i32_hdot"

TensorIntrin.register(
    ARM_DOT_4x4_i8_NEON_INTRIN, neon_4x4_i8i8i32_desc, neon_4x4_i8i8i32_impl, override=True
)
for _name, _types in {
    ARM_DOT_4x4_i8_SDOT_INTRIN: ("int8", "int32"),
    ARM_DOT_4x4_u8_UDOT_INTRIN: ("uint8", "uint32"),
    ARM_DOT_4x4_u8_HDOT_INTRIN: ("uint8", "int32"),
}.items():
    TensorIntrin.register(_name, *get_dotprod_intrin(*_types), override=True)
