# SPDX-License-Identifier: Apache-2.0
"""What the rules for GPUs share."""

import functools

from tvm import tir

from ..analysis import normalize_prim_func
from ..base import ScheduleRule, max_threads_per_block


class GPUScheduleRule(ScheduleRule):
    """A rule for GPUs."""

    def is_target_available(self, target):
        """Whether the target is a GPU."""
        return "gpu" in target.keys


class DoesNotFit(Exception):
    """A rule cannot begin with a function."""


def start(func):
    """A schedule of the function and its blocks; DoesNotFit where the function is no sequence of
    plain blocks."""
    if not isinstance(func, tir.PrimFunc) or not isinstance(func.body, tir.BlockRealize):
        raise DoesNotFit
    sch = tir.Schedule(func)
    infos = normalize_prim_func(sch)
    if not infos:
        raise DoesNotFit
    return sch, infos


def threads_of(target, most=256):
    """A power of two of threads that a block has."""
    limit, count = min(max_threads_per_block(target), most), 1
    while count * 2 <= limit:
        count *= 2
    return count


def fused(sch, block, loops):
    """One loop of several; of none a new one around the block."""
    loops = list(loops)
    return sch.fuse(*loops) if loops else sch.add_unit_loop(block)


def bind_to_threads(sch, loop, threads):
    """Runs the iterations on `threads` threads; what is more runs one after the other."""
    _, thread = sch.split(loop, [None, threads])
    sch.bind(thread, "threadIdx.x")
    return thread


def bind_to_grid(sch, around, iters, threads):
    """Runs the iterations on threads of as many blocks as it takes. Loops of unknown extent are
    not split when they are fused: their iterators could not be told apart any more."""
    known = [i.loop_rv for i in iters if isinstance(i.dom, int)]
    unknown = [i.loop_rv for i in iters if not isinstance(i.dom, int)]
    outer, inner = (unknown, known) if known else (unknown[:-1], unknown[-1:])
    if outer and inner:
        sch.reorder(*outer, *inner)
    if outer:
        sch.bind(sch.fuse(*outer), "blockIdx.y")
    block, thread = sch.split(fused(sch, around, inner), [None, threads])
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
