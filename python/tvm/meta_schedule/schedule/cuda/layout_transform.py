# SPDX-License-Identifier: Apache-2.0
"""Changes of layout on a GPU: squares of the two layouts' last axes go through shared memory, so
that threads read and write neighbouring elements.

A block asks for it by the annotations "schedule_rule": "layout_transform", "src_layout" and
"dst_layout" (letters, one per axis) and "input_shape".
"""

import math

from tvm.target import Target

from ...utils import registered

THREADS = 256


def get_max_tile_size():
    """The side of the largest square of 4-byte elements that a block of the current target's
    threads can hold in shared memory, with a fourth of it left for other blocks: at most 64."""
    target = Target.current(allow_none=True)
    shared = 48 << 10
    if target is not None:
        shared = int(target.attrs.get("max_shared_memory_per_block", shared))
    return max(1, min(64, math.isqrt(shared // 4 // 4)))


def auto_inline_into(sch, start_block):
    """Inlines what produces the input of a block, and the elementwise blocks after it. Returns the
    block that is left: the last one of the chain."""
    for producer in sch.get_producers(start_block):
        if not sch.get_producers(producer) or _is_spatial(sch, producer):
            sch.compute_inline(producer)
    last = start_block
    while len(consumers := sch.get_consumers(last)) == 1 and _is_spatial(sch, consumers[0]):
        sch.compute_inline(last)
        last = consumers[0]
    return last


def _is_spatial(sch, block):
    return all(int(iter_var.iter_type) == 0 for iter_var in sch.get(block).iter_vars)


def create_cached_read(sch, block_write, orig_input_shape, orig_src_layout, orig_dst_layout):
    """Reads the input through shared memory. Returns the block that copies, and the shape and the
    layouts as this block sees them: without the axes of one element, which move nowhere."""
    block_read = sch.cache_read(block_write, 0, "shared")
    kept = [c for c, n in zip(orig_src_layout, orig_input_shape, strict=True) if int(n) > 1]
    shape = [int(n) for n in orig_input_shape if int(n) > 1]
    only = lambda layout: "".join(c for c in layout if c in kept)
    return block_read, shape, only(orig_src_layout), only(orig_dst_layout)


def tile_layout_transform(
    sch, block_read, block_write, src_layout, dst_layout, input_shape, tile_size
):
    """Squares of `tile_size` along the last axes of both layouts, one to a block of threads.
    Returns the two blocks. `input_shape` has no effect: the loops have the sizes."""
    loops = sch.get_loops(block_write)
    units = [loop for loop in loops if int(sch.get(loop).extent) == 1]
    by_axis = dict(zip(dst_layout, [n for n in loops if n not in units], strict=True))
    inner = dict.fromkeys((src_layout[-1], dst_layout[-1]))
    tiles = {c: sch.split(by_axis[c], [None, tile_size]) for c in inner}
    outer = units + [loop for c, loop in by_axis.items() if c not in tiles]
    outer += [t[0] for t in tiles.values()]
    square = [t[1] for t in tiles.values()]
    sch.reorder(*outer, *square)
    blocks = sch.fuse(*outer)
    sch.bind(blocks, "blockIdx.x")
    sch.compute_at(block_read, blocks, preserve_unit_loops=True)
    rank = len(sch.get(block_read).iter_vars)
    for part in (square, sch.get_loops(block_read)[-rank:]):
        _, threads = sch.split(sch.fuse(*part), [None, THREADS])
        sch.bind(threads, "threadIdx.x")
    return block_read, block_write


def _tiled(sch, block, facts, tile_size):
    last = auto_inline_into(sch, block)
    read, shape, src, dst = create_cached_read(sch, last, *facts)
    tile_layout_transform(sch, read, last, src, dst, shape, tile_size)
    return sch


@registered("meta_schedule.cuda.layout_transform")
def cuda_layout_transform_schedule_rule(sch, block, testing_tile_sizes=None):
    """The ways to schedule a change of layout: without shared memory (the other rules bind its
    threads), and, where the last axis moves, with squares of a sampled size."""
    marks = sch.get(block).annotations
    src, dst = (str(marks[key]) for key in ("src_layout", "dst_layout"))
    shape = [int(n) for n in marks["input_shape"]]
    if sorted(src) != sorted(dst) or len(set(src)) != len(src) or len(shape) != len(src):
        raise ValueError(
            "layout_transform: expected layouts of the same axes, one for each dimension of "
            f"input_shape, got {src}, {dst} and {shape}"
        )
    plain = sch.copy()
    plain.unannotate(block, "schedule_rule")
    if src[-1] == dst[-1]:
        return [plain]
    tiled = sch.copy()
    tiled.unannotate(block, "schedule_rule")
    if testing_tile_sizes is not None:
        return [plain] + [
            _tiled(tiled.copy(), block, (shape, src, dst), n) for n in testing_tile_sizes
        ]
    sizes = [n for n in (4, 8, 16, 32, 64) if n <= get_max_tile_size()]
    size = tiled.sample_categorical(sizes, [1 / len(sizes)] * len(sizes))
    return [plain, _tiled(tiled, block, (shape, src, dst), size)]
