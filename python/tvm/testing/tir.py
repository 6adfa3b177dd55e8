# SPDX-License-Identifier: Apache-2.0
"""Schedules of products on matrix units, for tests."""

import tvm

_WARP = 32


def mma_schedule(
    workload,
    k_inner,
    in_dtype,
    b_transposed,
    i_factors,
    j_factors,
    k_factors,
    index_map_A,
    index_map_B,
    index_map_C,
    ldmatrix_a_intrin,
    ldmatrix_b_intrin,
    mma_intrin,
    mma_fill_intrin,
    mma_store_intrin,
    shared_scope="shared",
):
    """A schedule of a product (block "C", of i, j and k) whose warps multiply tiles of 16 x 16 x
    k_inner.

    i_factors and j_factors divide the tiles of rows and columns among (blockIdx.x, blockIdx.y,
    threadIdx.y, two loops), k_factors the depth among (what is in shared memory at once, what is in
    registers, a loop). The maps give (thread, register) of an element of a tile.
    """
    sch = tvm.tir.Schedule(workload)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i, i_tile = sch.split(i, [None, 16])
    j, j_tile = sch.split(j, [None, 16])
    k, k_tile = sch.split(k, [None, k_inner])
    i0, i1, i2, i3, i4 = sch.split(i, i_factors)
    j0, j1, j2, j3, j4 = sch.split(j, j_factors)
    k0, k1, k2 = sch.split(k, k_factors)
    sch.reorder(
        i0, j0, i1, j1, j2, i2, k0, k1, i3, j3, k2, i4, j4, i_tile, j_tile, k_tile
    )  # fmt: skip
    sch.bind(sch.fuse(i0, j0), "blockIdx.x")
    sch.bind(sch.fuse(i1, j1), "blockIdx.y")
    warps = sch.fuse(j2, i2)
    sch.bind(warps, "threadIdx.y")
    n_warps = int(sch.get(warps).extent)
    lanes = 128 // tvm.DataType(in_dtype).bits  # elements of 16 bytes

    def load(operand, intrin, index_map, shape):
        shared = sch.cache_read(block, operand, shared_scope)
        sch.compute_at(shared, k0)
        fused = sch.fuse(*sch.get_loops(shared)[-2:])
        _, y, x, vector = sch.split(fused, [None, n_warps, _WARP, lanes])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
        sch.vectorize(vector)
        warp = sch.cache_read(block, operand, "warp")
        sch.compute_at(warp, k1)
        inner = _tiled(sch, warp, shape)
        sch.transform_layout(warp, ("write", 0), _map_of(index_map, shape))
        sch.tensorize(inner, intrin)

    load(0, ldmatrix_a_intrin, index_map_A, (16, k_inner))
    load(1, ldmatrix_b_intrin, index_map_B, (16, k_inner) if b_transposed else (k_inner, 16))
    result = sch.cache_write(block, 0, "warp")
    sch.reverse_compute_at(result, warps)
    stored = _tiled(sch, result, (16, 16))
    sch.transform_layout(result, ("read", 0), _map_of(index_map_C, (16, 16)))
    start = sch.decompose_reduction(block, k0)
    sch.tensorize(stored, mma_store_intrin)
    sch.tensorize(sch.get_loops(start)[-2], mma_fill_intrin)
    sch.tensorize(i_tile, mma_intrin)
    return sch


def _tiled(sch, block, shape):
    """The last two loops in tiles; the first loop of a tile."""
    i, j = sch.get_loops(block)[-2:]
    i, i_tile = sch.split(i, [None, shape[0]])
    j, j_tile = sch.split(j, [None, shape[1]])
    sch.reorder(i, j, i_tile, j_tile)
    return i_tile


def _map_of(layout, shape):
    rows, columns = shape
    return lambda i, j: (i // rows, j // columns, *layout(i % rows, j % columns))
