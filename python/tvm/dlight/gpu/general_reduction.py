# SPDX-License-Identifier: Apache-2.0
"""Several stages over the same rows, as in softmax and normalisations."""

from ..base import try_inline_contiguous_spatial
from .base import GPUScheduleRule, bind_to_threads, fused, or_none, start, threads_of_rows


def _rows_of(kind):
    """How many leading iterators may be those of rows: what is in a row comes after them."""
    leading = len(kind) - len(kind.lstrip("S"))
    return leading if "R" in kind or leading == 1 else leading - 1


def schedule_rows(sch, infos, threads, unroll):
    """A block of threads for each row, with what one stage gives the next in shared memory; None
    where the blocks are not stages over the same rows."""
    kinds = [info.dom_kind() for info in infos]
    if len(infos) < 2 or "R" not in "".join(kinds) or "O" in "".join(kinds):
        return None
    rows = min(map(_rows_of, kinds))
    if rows == 0 or not infos[-1].is_injective():
        return None
    if any(info.dom()[:rows] != infos[-1].dom()[:rows] for info in infos):
        return None
    last = infos[-1].block_rv
    block = sch.fuse(*sch.get_loops(last)[:rows])
    sch.bind(block, "blockIdx.x")
    bind_to_threads(sch, fused(sch, last, sch.get_loops(last)[1:]), threads, unroll)
    for info in reversed(infos[:-1]):
        sch.compute_at(info.block_rv, block, preserve_unit_loops=True)
        sch.set_scope(info.block_rv, 0, "shared")
        inner = sch.get_loops(info.block_rv)[1:]
        # One row: what is left of its loops are those of the reduction, or of its elements.
        bind_to_threads(sch, sch.fuse(*inner), threads, unroll)
    return sch


class GeneralReduction(GPUScheduleRule):
    """Reductions of rows, and what uses them: a block of threads for each row, with what one stage
    gives the next in shared memory."""

    @or_none
    def apply(self, func, target, _):
        """The scheduled function, or None."""
        sch, infos = start(func)
        infos = try_inline_contiguous_spatial(sch, infos)
        return schedule_rows(sch, infos, *threads_of_rows(target))
