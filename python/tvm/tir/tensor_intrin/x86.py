# SPDX-License-Identifier: Apache-2.0
"""Intrinsics of x86: dot products of bytes."""

from tvm.script import tir as T

from ..function import TensorIntrin
from .dot_product_common import dot_product_of_bytes, llvm_intrin


def _vnni(c, word, b):
    a = T.reinterpret("uint8x64", T.broadcast(word, 16))
    return llvm_intrin("int32x16", "llvm.x86.avx512.vpdpbusd.512", c, a, b)


def _avx512(c, word, b):
    # Products of neighbouring bytes are added in 16 bits by vpmaddubsw, which saturates; here even
    # and odd bytes are widened first, so that the result is exact.
    a = T.reinterpret("uint16x32", T.broadcast(word, 16))
    b = T.reinterpret("int16x32", b)
    by_8 = T.broadcast(T.int16(8), 32)

    def products(x, y):
        x = T.reinterpret("int16x32", x)
        return llvm_intrin("int32x16", "llvm.x86.avx512.pmaddw.d.512", x, y)

    even = products(
        T.bitwise_and(a, T.broadcast(T.uint16(255), 32)), T.shift_right(T.shift_left(b, by_8), by_8)
    )
    odd = products(T.shift_right(a, T.broadcast(T.uint16(8), 32)), T.shift_right(b, by_8))
    return c + even + odd


VNNI_DOT_16x4_INTRIN = "dot_16x4_vnni"
AVX512_DOT_16x4_INTRIN = "dot_16x4_avx512"

dot_product_16x4_u8i8i32_desc, dot_product_16x4_u8i8i32_vnni = dot_product_of_bytes(
    16, "uint8", "int8", "int32", _vnni
)
_, dot_product_16x4_u8i8i32_avx512 = dot_product_of_bytes(16, "uint8", "int8", "int32", _avx512)

for _name, _impl in {
    VNNI_DOT_16x4_INTRIN: dot_product_16x4_u8i8i32_vnni,
    AVX512_DOT_16x4_INTRIN: dot_product_16x4_u8i8i32_avx512,
}.items():
    TensorIntrin.register(_name, dot_product_16x4_u8i8i32_desc, _impl, override=True)
