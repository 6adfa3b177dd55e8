# SPDX-License-Identifier: Apache-2.0
"""Intrinsics for `Schedule.tensorize`: importing a module registers those of one kind of
processor."""

import importlib

from . import arm_cpu, dot_product_common, riscv_cpu, rocm, x86

__all__ = ["arm_cpu", "cuda", "dot_product_common", "riscv_cpu", "rocm", "x86"]


def __getattr__(name):
    if name != "cuda":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(__name__ + ".cuda")  # dozens: parsed for those who use them
