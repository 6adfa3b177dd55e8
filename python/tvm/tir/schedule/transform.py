# SPDX-License-Identifier: Apache-2.0
"""Sequences of primitives with a purpose."""

from tvm.tir.function import TensorIntrin

from .analysis import get_tensorize_loop_mapping


def tile_with_tensor_intrin(sch, block, intrin_name, allow_padding=False):
    """Splits and reorders the loops of a block so that the innermost ones are those of the
    intrinsic; returns the outermost of these, or None when the intrinsic does not fit."""
    desc = TensorIntrin.get(intrin_name).desc
    info = get_tensorize_loop_mapping(sch, block, desc, allow_padding)
    if info is None:
        return None
    if info.block_iter_paddings is not None:
        sch.pad_einsum(block, [int(p) for p in info.block_iter_paddings])
        info = get_tensorize_loop_mapping(sch, block, desc, False)
    by_var = {sch.get(loop).loop_var: loop for loop in sch.get_loops(block)}
    inner = {}
    for sref, desc_loop in info.loop_map.items():
        _, tile = sch.split(by_var[sref.stmt.loop_var], [None, int(desc_loop.extent)])
        inner[int(info.desc_loop_indexer[desc_loop])] = tile
    tiles = [inner[i] for i in sorted(inner)]
    outer = [
        loop
        for loop in sch.get_loops(block)
        if not any(sch.get(loop).loop_var.same_as(sch.get(t).loop_var) for t in tiles)
    ]
    sch.reorder(*outer, *tiles)
    return tiles[0]
