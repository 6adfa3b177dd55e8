# SPDX-License-Identifier: Apache-2.0
"""What is particular to targets: stages of their pipelines, and passes that prefer libraries."""

from . import adreno, cpu_generic, cuda, gpu_generic, rocm

__all__ = ["adreno", "cpu_generic", "cuda", "gpu_generic", "rocm"]


def __getattr__(name):
    if name in ("DispatchSampling", "DispatchSortScan"):
        from tvm.relax import transform

        return getattr(transform, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
