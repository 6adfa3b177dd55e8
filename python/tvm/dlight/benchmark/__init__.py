# SPDX-License-Identifier: Apache-2.0
"""Measuring functions of TIR over samples of their symbolic sizes."""

from .bench import benchmark, benchmark_prim_func
from .extract import extract_func_info_from_prim_func, extract_prim_func

__all__ = [
    "benchmark",
    "benchmark_prim_func",
    "extract_func_info_from_prim_func",
    "extract_prim_func",
]
