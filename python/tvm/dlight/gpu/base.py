# SPDX-License-Identifier: Apache-2.0
"""What the rules for GPUs share."""

import functools
from typing import NamedTuple

from tvm import tir

from ..analysis import normalize_prim_func
from ..analysis.common_analysis import get_block_infos
from ..base import ScheduleRule, max_threads_per_block


class GPUScheduleRule(ScheduleRule):
    """A rule for GPUs."""

    def is_target_available(self, target):
        """Whether the target is a GPU."""
        return "gpu" in target.keys


class DoesNotFit(Exception):
    """A rule cannot begin with a function."""


def start(func, keep_units=False):
    """A schedule of the function and its blocks; DoesNotFit where the function is no sequence of
    plain blocks. Iterators of extent 1 are dropped, unless their places count."""
    if not isinstance(func, tir.PrimFunc) or not isinstance(func.body, tir.BlockRealize):
        raise DoesNotFit
    sch = tir.Schedule(func)
    infos = get_block_infos(sch) if keep_units else normalize_prim_func(sch)
    if not infos:
        raise DoesNotFit
    return sch, infos


def threads_of(target, most=1024):
    """A power of two of threads that a block has."""
    limit = min(max_threads_per_block(target), most)
    return 1 << (limit.bit_length() - 1)


class Sizes(NamedTuple):
    """What pays on a kind of device."""

    row_threads: int  # for a row
    row_unroll: int  # steps of the loops of each of them
    tile: int  # side of a transposed square
    tile_rows: int  # of it that threads read at once


_SIZES = {"cuda": Sizes(256, 256, 16, 8), "opencl": Sizes(256, 64, 16, 8)}
_OTHERS = Sizes(64, 64, 8, 4)


def sizes_of(target):
    return _SIZES.get(str(target.kind.name), _OTHERS)


def threads_of_rows(target):
    """(threads for a row, how far the loops of each of them are unrolled)."""
    sizes = sizes_of(target)
    return threads_of(target, sizes.row_threads), sizes.row_unroll


def unroll_inside(sch, loop, steps):
    """Asks for the loop, and what is in it, to be unrolled up to so many steps."""
    sch.annotate(loop, "pragma_auto_unroll_max_step", steps)
    sch.annotate(loop, "pragma_unroll_explicit", 1)


def fused(sch, block, loops):
    """One loop of several; of none a new one around the block."""
    loops = list(loops)
    return sch.fuse(*loops) if loops else sch.add_unit_loop(block)


def bind_to_threads(sch, loop, threads, unroll=0):
    """Runs the iterations on `threads` threads; what is more runs one after the other, inside of
    the thread's loop where it is to be unrolled."""
    more, thread = sch.split(loop, [None, threads])
    if unroll:
        sch.reorder(thread, more)
        unroll_inside(sch, more, unroll)
    sch.bind(thread, "threadIdx.x")
    return thread


def bind_to_grid(sch, around, loops, threads):
    """Runs the iterations on threads of as many blocks as it takes."""
    block, thread = sch.split(fused(sch, around, loops), [None, threads])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")


def or_none(apply):
    """A rule that does not fit, or that a primitive refuses after all, passes the function on."""

    @functools.wraps(apply)
    def attempt(self, func, target, _):
        try:
            return apply(self, func, target, _)
        except (DoesNotFit, tir.ScheduleError):
            return None

    return attempt
