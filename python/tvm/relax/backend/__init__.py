# SPDX-License-Identifier: Apache-2.0
"""What is particular to targets: stages of their pipelines, and passes that prefer libraries."""

from . import adreno, cpu_generic, cuda, gpu_generic, rocm
from .pattern_registry import get_pattern, get_patterns_with_prefix, register_patterns

__all__ = [
    "adreno",
    "cpu_generic",
    "cuda",
    "get_pattern",
    "get_patterns_with_prefix",
    "gpu_generic",
    "register_patterns",
    "rocm",
]


def __getattr__(name):
    if name in ("DispatchSampling", "DispatchSortScan"):
        from tvm.relax import transform

        return getattr(transform, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
