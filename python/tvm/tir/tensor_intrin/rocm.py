# SPDX-License-Identifier: Apache-2.0
"""Dot products of AMD's GPUs."""

from tvm.script import tir as T

from ..function import TensorIntrin
from .dot_product_common import get_dp4a_intrin, llvm_intrin


@T.prim_func
def sdot4(
    A: T.Buffer((4,), "int8", offset_factor=1, align=4, scope="shared"),
    B: T.Buffer((4,), "int8", offset_factor=1, align=4, scope="shared"),
    C: T.Buffer((1,), "int32", offset_factor=1, align=4, scope="local"),
) -> None:
    with T.block("root"):
        T.reads(C[0], A[0:4], B[0:4])
        T.writes(C[0])
        C[0] = llvm_intrin(
            "int32",
            "llvm.amdgcn.sdot4",
            T.reinterpret("int32", A.vload([0], "int8x4")),
            T.reinterpret("int32", B.vload([0], "int8x4")),
            C[0],
            T.bool(False),  # it wraps
        )


AMDGPU_SDOT4_INTRIN = "sdot4"

TensorIntrin.register(
    AMDGPU_SDOT4_INTRIN, get_dp4a_intrin("int8", "int8", "int32")[0], sdot4, override=True
)
