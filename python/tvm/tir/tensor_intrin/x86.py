# SPDX-License-Identifier: Apache-2.0
"""Intrinsics of x86: dot products of bytes."""

from tvm.script import tir as T

from ..function import TensorIntrin


@T.prim_func
def dot_product_16x4_u8i8i32_desc(
    A: T.Buffer((4,), "uint8", offset_factor=1),
    B: T.Buffer((16, 4), "int8", offset_factor=1),
    C: T.Buffer((16,), "int32", offset_factor=1),
) -> None:
    with T.block("root"):
        T.reads(C[0:16], A[0:4], B[0:16, 0:4])
        T.writes(C[0:16])
        for i in T.serial(0, 16):
            for k in T.serial(0, 4):
                with T.block("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + T.cast(A[vk], "int32") * T.cast(B[vi, vk], "int32")


@T.prim_func
def dot_product_16x4_u8i8i32_vnni(
    A: T.Buffer((4,), "uint8", offset_factor=1),
    B: T.Buffer((16, 4), "int8", offset_factor=1),
    C: T.Buffer((16,), "int32", offset_factor=1),
) -> None:
    with T.block("root"):
        T.reads(C[0:16], A[0:4], B[0:16, 0:4])
        T.writes(C[0:16])
        a: T.int32 = T.reinterpret("int32", A[T.ramp(0, 1, 4)])
        C[T.ramp(0, 1, 16)] = T.call_intrin(
            "int32x16",
            "tir.call_llvm_pure_intrin",
            "llvm.x86.avx512.vpdpbusd.512",
            C[T.ramp(0, 1, 16)],
            T.reinterpret("uint8x64", T.broadcast(a, 16)),
            B[0, T.ramp(0, 1, 64)],
        )


# Products of neighbouring bytes are added in 16 bits by vpmaddubsw, which saturates; here even and
# odd bytes are widened first, so that the result is exact.
@T.prim_func
def dot_product_16x4_u8i8i32_avx512(
    A: T.Buffer((4,), "uint8", offset_factor=1),
    B: T.Buffer((16, 4), "int8", offset_factor=1),
    C: T.Buffer((16,), "int32", offset_factor=1),
) -> None:
    with T.block("root"):
        T.reads(C[0:16], A[0:4], B[0:16, 0:4])
        T.writes(C[0:16])
        word: T.int32 = T.reinterpret("int32", A[T.ramp(0, 1, 4)])
        a = T.reinterpret("uint16x32", T.broadcast(word, 16))
        b = T.reinterpret("int16x32", B[0, T.ramp(0, 1, 64)])
        even = T.call_intrin(
            "int32x16",
            "tir.call_llvm_pure_intrin",
            "llvm.x86.avx512.pmaddw.d.512",
            T.reinterpret("int16x32", T.bitwise_and(a, T.broadcast(T.uint16(255), 32))),
            T.shift_right(
                T.shift_left(b, T.broadcast(T.int16(8), 32)), T.broadcast(T.int16(8), 32)
            ),
        )
        odd = T.call_intrin(
            "int32x16",
            "tir.call_llvm_pure_intrin",
            "llvm.x86.avx512.pmaddw.d.512",
            T.reinterpret("int16x32", T.shift_right(a, T.broadcast(T.uint16(8), 32))),
            T.shift_right(b, T.broadcast(T.int16(8), 32)),
        )
        C[T.ramp(0, 1, 16)] = C[T.ramp(0, 1, 16)] + even + odd


VNNI_DOT_16x4_INTRIN = "dot_16x4_vnni"
AVX512_DOT_16x4_INTRIN = "dot_16x4_avx512"

TensorIntrin.register(
    VNNI_DOT_16x4_INTRIN,
    dot_product_16x4_u8i8i32_desc,
    dot_product_16x4_u8i8i32_vnni,
    override=True,
)
TensorIntrin.register(
    AVX512_DOT_16x4_INTRIN,
    dot_product_16x4_u8i8i32_desc,
    dot_product_16x4_u8i8i32_avx512,
    override=True,
)
