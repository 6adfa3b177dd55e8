# SPDX-License-Identifier: Apache-2.0
"""Intrinsics of RISC-V: dot products by the vector extension, as long as its registers."""

import logging

from tvm_ffi import register_global_func

from tvm.script import tir as T
from tvm.target import Target, codegen

from ..function import TensorIntrin
from .dot_product_common import dot_product_desc, llvm_intrin

logger = logging.getLogger(__name__)

# (A, B, C) of C += B . A, and the feature beside V that they need.
_TYPES = {
    ("uint8", "int8", "int32"): None,
    ("int8", "int8", "int32"): None,
    ("float16", "float16", "float16"): "zvfh",
    ("float32", "float32", "float32"): None,
}
_LMUL = (8, 4, 2, 1)


def _bits(dtype):
    return int("".join(c for c in dtype if c.isdigit()))


def get_max_elems(vlen, lmul, sew):
    """How many elements of `sew` bits `lmul` vector registers of `vlen` bits hold."""
    return vlen * lmul // sew


def rvv_vec_dot_product_kernels(n_elems, n_lanes, data_dtype, weight_dtype, out_dtype, lmul):
    """(description, implementation) of C[0:n_lanes] += B[0:n_lanes, 0:n_elems] . A[0:n_elems]. The
    products take `lmul` registers."""
    wide = f"{out_dtype}x{n_elems}"
    is_float = out_dtype.startswith("float")

    def total(products):
        if is_float:  # from the first to the last, as the description adds them
            zero = T.Cast(out_dtype, T.float32(0))
            return llvm_intrin(out_dtype, "llvm.vector.reduce.fadd", zero, products)
        return llvm_intrin(out_dtype, "llvm.vector.reduce.add", products)

    @T.prim_func
    def rvv_dot_product(
        A: T.Buffer((n_elems,), data_dtype, offset_factor=1),
        B: T.Buffer((n_lanes, n_elems), weight_dtype, offset_factor=1),
        C: T.Buffer((n_lanes,), out_dtype, offset_factor=1),
    ) -> None:
        with T.block("root"):
            T.reads(C[0:n_lanes], A[0:n_elems], B[0:n_lanes, 0:n_elems])
            T.writes(C[0:n_lanes])
            T.block_attr({"rvv_lmul": lmul})
            for i in range(n_lanes):
                C[i] = C[i] + total(
                    T.cast(A[T.ramp(0, 1, n_elems)], wide)
                    * T.cast(B[i, T.ramp(0, 1, n_elems)], wide)
                )

    desc = dot_product_desc(n_lanes, n_elems, data_dtype, weight_dtype, out_dtype)
    return desc, rvv_dot_product


def register_rvv_isa_intrinsics(target, inventory_only=False):
    """Registers the dot products that the vector registers of the target hold. Returns their names
    with the types and shapes, `{name: (data, weight, out, n_elems, n_lanes, lmul)}`; with
    `inventory_only` nothing is registered."""
    target = Target(target)
    if not codegen.target_has_features("v", target):
        raise ValueError(
            "register_rvv_isa_intrinsics: expected a target with the vector extension, "
            f"got {target}"
        )
    vlen = codegen.llvm_get_vector_width(target)
    inventory = {}
    for (data, weight, out), feature in _TYPES.items():
        if feature is not None and not codegen.target_has_features(feature, target):
            continue
        for lmul in _LMUL:
            n_elems = get_max_elems(vlen, lmul, _bits(out))
            n_lanes = get_max_elems(vlen, 1, _bits(out))
            name = f"rvv_dot_{n_elems}{data}_{n_lanes}x{n_elems}{weight}_{n_lanes}{out}"
            inventory[name] = (data, weight, out, n_elems, n_lanes, lmul)
    if not inventory_only:
        for name, (data, weight, out, n_elems, n_lanes, lmul) in inventory.items():
            kernels = rvv_vec_dot_product_kernels(n_elems, n_lanes, data, weight, out, lmul)
            TensorIntrin.register(name, *kernels, override=True)
            logger.debug("registered intrinsic %s for vectors of %d bits", name, vlen)
    return inventory


def register_riscv_intrinsics(target):
    """Registers what the extensions of the target have; none is no error."""
    if codegen.target_has_features("v", Target(target)):
        register_rvv_isa_intrinsics(target)


register_global_func(
    "tir.tensor_intrin.register_rvv_isa_intrinsics", register_rvv_isa_intrinsics, override=True
)
