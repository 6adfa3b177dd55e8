# SPDX-License-Identifier: Apache-2.0
"""Transposes through tiles in shared memory."""

from tvm import tir

from ..base import try_inline
from .base import GPUScheduleRule, or_none, sizes_of, start


class Transpose(GPUScheduleRule):
    """A copy that reads along another axis than it writes: squares are read and written along rows
    of memory."""

    def is_transpose(self, sch, block_rv):
        """Whether the block reads one buffer with its iterators in another order."""
        block = sch.get(block_rv)
        if not isinstance(block.body, tir.BufferStore) or len(block.reads) != 1:
            return False
        read = [r.min for r in block.reads[0].region]
        write = list(block.body.indices)
        if not all(isinstance(i, tir.Var) for i in read + write) or len(read) < 2:
            return False
        same = len(read) == len(write) and set(read) == set(write)
        return same and not read[-1].same_as(write[-1])

    @or_none
    def apply(self, func, target, _):
        """The scheduled function, or None."""
        sch, infos = start(func)
        infos = try_inline(sch, infos)
        if len(infos) != 1 or not self.is_transpose(sch, infos[0].block_rv):
            return None
        info = infos[0]
        block = sch.get(info.block_rv)
        by_var = {i.var: i.loop_rv for i in info.iters}
        across = by_var.pop(block.reads[0].region[-1].min)
        along = by_var.pop(block.body.indices[-1])
        sizes = sizes_of(target)
        tx, ty = sizes.tile, sizes.tile_rows

        def bind_tile(rows, columns):
            """The loops of a square: columns on threads, rows on as many as there are."""
            _, thread = sch.split(rows, [None, ty])
            sch.bind(thread, "threadIdx.y")
            sch.bind(columns, "threadIdx.x")

        a_outer, a_inner = sch.split(across, [None, tx])
        l_outer, l_inner = sch.split(along, [None, tx])
        sch.reorder(*by_var.values(), a_outer, l_outer, a_inner, l_inner)
        grid = sch.fuse(*by_var.values(), a_outer, l_outer)
        sch.bind(grid, "blockIdx.x")
        bind_tile(a_inner, l_inner)
        tile = sch.cache_read(info.block_rv, 0, "shared")
        sch.compute_at(tile, grid, preserve_unit_loops=True)
        # Rows of the tile do not begin in the same bank.
        sch.storage_align(tile, 0, axis=-2, factor=32, offset=1)
        *outer, columns = sch.get_loops(tile)[1:]
        bind_tile(sch.fuse(*outer), columns)
        return sch
