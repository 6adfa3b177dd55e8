# SPDX-License-Identifier: Apache-2.0
"""Normalisation by the root of the mean of the squares."""

from tvm import tir

from ..base import ScheduleRule, try_inline_contiguous_spatial
from .base import or_none, start, threads_of_rows
from .general_reduction import schedule_rows


def _stored(block):
    """What a block of a single store stores, or None."""
    return block.body.value if isinstance(block.body, tir.BufferStore) else None


def identify_cast_or_load_block(block):
    """Whether the block copies elements, perhaps into another type."""
    value = _stored(block)
    if isinstance(value, tir.Cast):
        value = value.value
    if not isinstance(value, tir.BufferLoad) or block.init is not None:
        return False
    indices = [*value.indices, *block.body.indices]
    return all(isinstance(index, (tir.Var, tir.IntImm)) for index in indices)


def _calls_rsqrt(expr):
    found = []
    tir.stmt_functor.post_order_visit(
        expr, lambda n: found.append(isinstance(n, tir.Call) and n.op.name == "tir.rsqrt")
    )
    return any(found)


def identify_rsqrt_block(block):
    """Whether the block computes the inverse of a root, and nothing with it."""
    value = _stored(block)
    return isinstance(value, tir.Call) and value.op.name == "tir.rsqrt"


class RMSNorm(ScheduleRule):
    """One sum over each row, and what scales the row by the inverse of its root: a block of threads
    for each row."""

    def is_target_available(self, target):
        """Whether the target is a GPU."""
        return "gpu" in target.keys

    @or_none
    def apply(self, func, target, _):
        """The scheduled function, or None where it is no such normalisation."""
        sch, infos = start(func)
        values = [_stored(sch.get(info.block_rv)) for info in infos]
        if sum(info.is_reduction() for info in infos) != 1 or None in values:
            return None
        behind = [n for n, info in enumerate(infos) if info.is_reduction()][0] + 1
        if not any(_calls_rsqrt(value) for value in values[behind:]):
            return None
        return schedule_rows(
            sch, try_inline_contiguous_spatial(sch, infos), *threads_of_rows(target)
        )
