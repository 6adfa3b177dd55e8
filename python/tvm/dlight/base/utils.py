# SPDX-License-Identifier: Apache-2.0
"""Sizes that rules choose by."""

from tvm import DataType, tir

from ..analysis.common_analysis import get_max_threads_per_block as max_threads_per_block

__all__ = [
    "auto_vectorize",
    "get_bytes",
    "get_extent",
    "max_threads_per_block",
    "suggest_threads_per_block",
]


def get_bytes(dtype):
    """Bytes of a value of a type."""
    dtype = DataType(str(dtype))
    return (dtype.bits * dtype.lanes + 7) // 8


def get_extent(sch, loop_rv):
    """The extent of a loop, as an int where it is known."""
    extent = sch.get(loop_rv).extent
    return int(extent) if isinstance(extent, tir.IntImm) else extent


def auto_vectorize(sch, loop, max_vec):
    """Vectorizes a loop of known extent, the innermost part of it that has at most `max_vec`
    iterations."""
    extent = get_extent(sch, loop)
    if not isinstance(extent, int):
        return
    lanes = next(v for v in range(min(max_vec, extent), 0, -1) if extent % v == 0)
    if lanes > 1:
        sch.vectorize(sch.split(loop, [None, lanes])[-1])


def suggest_threads_per_block(target, loops, max_threads_for_dynamic_loop=32):
    """A number of threads for each of the loops, from the innermost outwards as many as fit; a loop
    of unknown extent gets at most `max_threads_for_dynamic_loop`."""
    left = min(max_threads_per_block(target), 256 if "cuda" in target.keys else 64)
    threads = []
    for loop in reversed(loops):
        known = isinstance(loop.extent, tir.IntImm)
        most = int(loop.extent) if known else max_threads_for_dynamic_loop
        count = 1
        while count * 2 <= min(left, most):
            count *= 2
        threads.append(count)
        left //= count
    return threads[::-1]
