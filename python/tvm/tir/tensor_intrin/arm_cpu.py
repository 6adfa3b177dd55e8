# SPDX-License-Identifier: Apache-2.0
"""Intrinsics of ARM: dot products of bytes by Neon and by the dot-product extension; SME."""

from tvm.script import tir as T

from ..function import TensorIntrin
from .arm_sme import (  # noqa: F401
    ARM_SME_INIT,
    ARM_SME_2SVLx2SVL_FP32_TRANSPOSE_INTERLEAVE,
    ARM_SME_2SVLx2SVL_GEMM_INTERLEAVED_MOPA,
    ARM_SME_BLOCK2_2SVLx1SVL_FP16_TRANSPOSE_INTERLEAVE,
    get_sme_gemm_interleaved_mopa_2svlx2svl_intrin,
    get_sme_init_intrin,
    get_sme_transpose_interleave_2svlx2svl_fp32_intrin,
    get_sme_transpose_interleave_block2_2svl_fp16_intrin,
    get_transpose_interleave_intrin_name,
)
from .dot_product_common import (  # noqa: F401
    DP4A_S8S8S32_INTRIN,
    DP4A_S8U8S32_INTRIN,
    DP4A_U8S8S32_INTRIN,
    DP4A_U8U8U32_INTRIN,
    dot_product_of_bytes,
    llvm_intrin,
)


def _neon(c, word, b):
    # Products of bytes fit 16 bits, the sum of two of them does not always: they are widened before
    # they are added.
    a = T.reinterpret("int8x8", T.broadcast(word, 2))
    low, high = (
        llvm_intrin(
            "int32x4",
            "llvm.aarch64.neon.saddlp",
            llvm_intrin("int16x8", "llvm.aarch64.neon.smull", half, a),
        )
        for half in (_eight(b, 0), _eight(b, 8))
    )
    return c + llvm_intrin("int32x4", "llvm.aarch64.neon.addp", low, high)


def _eight(vector, start):
    """Eight elements of a vector."""
    return T.Shuffle([vector], [T.int32(start + i) for i in range(8)])


def get_dotprod_intrin(in_dtype, out_dtype):
    """(description, implementation) by sdot or udot."""
    name = f"llvm.aarch64.neon.{'sdot' if in_dtype == 'int8' else 'udot'}"

    def compute(c, word, b):
        a = T.reinterpret(f"{in_dtype}x16", T.broadcast(word, 4))
        return llvm_intrin(f"{out_dtype}x4", name, c, a, b)

    return dot_product_of_bytes(4, in_dtype, in_dtype, out_dtype, compute)


neon_4x4_i8i8i32_desc, neon_4x4_i8i8i32_impl = dot_product_of_bytes(
    4, "int8", "int8", "int32", _neon
)

ARM_DOT_4x4_i8_NEON_INTRIN = "dot_4x4_i8i8s32_neon"
ARM_DOT_4x4_i8_SDOT_INTRIN = "dot_4x4_i8i8s32_sdot"
ARM_DOT_4x4_u8_UDOT_INTRIN = "dot_4x4_u8u8u32_udot"
ARM_DOT_4x4_u8_HDOT_INTRIN = "dot_4x4_u8u8i32_hdot"

for _name, _intrin in {
    ARM_DOT_4x4_i8_NEON_INTRIN: (neon_4x4_i8i8i32_desc, neon_4x4_i8i8i32_impl),
    ARM_DOT_4x4_i8_SDOT_INTRIN: get_dotprod_intrin("int8", "int32"),
    ARM_DOT_4x4_u8_UDOT_INTRIN: get_dotprod_intrin("uint8", "uint32"),
    ARM_DOT_4x4_u8_HDOT_INTRIN: get_dotprod_intrin("uint8", "int32"),
}.items():
    TensorIntrin.register(_name, *_intrin, override=True)
