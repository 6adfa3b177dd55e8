# SPDX-License-Identifier: Apache-2.0
"""What cuBLAS can take over, as patterns."""

from ..checks import dtype_of, matmul_patterns, partition, register_patterns
from ..patterns import make_matmul_dequantize_pattern, make_matmul_multiply_pattern
from ..utils import has_leaking_intermediate_variables

_DTYPES = ("float16", "float32", "bfloat16", "int8")


def _check_scaled(context):
    """Products of int8 or float8 with one scale."""
    parts = context.annotated_expr
    narrow = ("int8", "float8_e4m3fn", "float8_e5m2")
    return (
        not has_leaking_intermediate_variables(context)
        and dtype_of(parts["lhs"]) in narrow
        and dtype_of(parts["rhs"]) in narrow
        and parts["scale"].data.numpy().size == 1
    )


register_patterns(
    [
        *matmul_patterns("cublas", _DTYPES),
        (
            "cublas.matmul_transposed_dequantize",
            *make_matmul_dequantize_pattern(transposed_rhs=True),
            _check_scaled,
        ),
        (
            "cublas.matmul_transposed_multiply",
            *make_matmul_multiply_pattern(transposed_rhs=True),
            _check_scaled,
        ),
    ]
)


def partition_for_cublas(mod, bind_constants=False):
    """The module with products cut out for cuBLAS."""
    return partition(mod, "cublas", bind_constants=bind_constants, annotate_codegen=True)
