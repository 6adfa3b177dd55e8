# SPDX-License-Identifier: Apache-2.0
"""What hipBLAS can take over, as patterns."""

from ..checks import matmul_patterns, partition, register_patterns

register_patterns(matmul_patterns("hipblas", ("float16", "float32", "int8")))


def partition_for_hipblas(mod):
    """The module with products cut out for hipBLAS."""
    return partition(mod, "hipblas", bind_constants=False, annotate_codegen=True)
