# SPDX-License-Identifier: Apache-2.0
"""Products of matrices for tests of matrix units."""

import tvm
from tvm import te
from tvm.tir.tensor_intrin.cuda import get_wmma_intrin_group


def product(m, n, k, dtype, out="float32", trans_a=False, trans_b=False, batch=None, last=None):
    """[batch,] m x k times k x n, with a last step: "bias" adds one per column and drops what is
    negative."""
    lead = () if batch is None else (batch,)
    A = te.placeholder(lead + ((k, m) if trans_a else (m, k)), dtype, name="A")
    B = te.placeholder(lead + ((n, k) if trans_b else (k, n)), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")
    wide = "int32" if "int" in dtype else "float32"

    def element(*at):
        p, (i, j) = at[:-2], at[-2:]
        a = A(*p, r, i) if trans_a else A(*p, i, r)
        b = B(*p, j, r) if trans_b else B(*p, r, j)
        return te.sum(a.astype(wide) * b.astype(wide), axis=r)

    args = [A, B]
    C = te.compute(lead + (m, n), element, name="C")
    if last == "bias":
        D = te.placeholder((n,), dtype, name="D")
        args.append(D)
        zero = tvm.tir.const(0, wide)
        C = te.compute(
            lead + (m, n),
            lambda *at: te.max(C(*at) + D(at[-1]).astype(wide), zero).astype(out),
            name="E",
        )
    elif out != wide:
        C = te.compute(lead + (m, n), lambda *at: C(*at).astype(out), name="E")
    return te.create_prim_func([*args, C])


def wmma_product(size, dtype="float16", out="float32", trans_b=False):
    """A product that a script schedules itself, with the intrinsics of WMMA: a block of four warps
    has 64 x 64 results, a warp 32 x 32."""
    sch = tvm.tir.Schedule(product(size, size, size, dtype, out, trans_b=trans_b))
    names = get_wmma_intrin_group("shared", "global", dtype, out, trans_b)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1, i2, i3 = sch.split(i, [None, 2, 2, 16])
    j0, j1, j2, j3 = sch.split(j, [None, 2, 2, 16])
    k0, k1, k2 = sch.split(k, [None, 2, 16])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2, i3, j3, k2)
    for loop, index in zip((i0, j0), ("blockIdx.y", "blockIdx.x"), strict=True):
        sch.bind(loop, index)
    for loop, index in zip((i1, j1), ("threadIdx.y", "threadIdx.z"), strict=True):
        sch.bind(loop, index)
    result = sch.cache_write(block, 0, "wmma.accumulator")
    sch.reverse_compute_at(result, j1)
    for operand, name in enumerate("ab"):
        shared = sch.cache_read(block, operand, "shared")
        sch.compute_at(shared, k0)
        fused = sch.fuse(*sch.get_loops(shared)[-2:])
        _, y, z, x = sch.split(fused, [None, 2, 2, 32])
        for loop, index in ((y, "threadIdx.y"), (z, "threadIdx.z"), (x, "threadIdx.x")):
            sch.bind(loop, index)
        fragment = sch.cache_read(block, operand, f"wmma.matrix_{name}")
        sch.compute_at(fragment, k1)
        tiles(sch, fragment, names[f"load_{name}"])
    tiles(sch, result, names["store"])
    start = sch.decompose_reduction(block, k0)
    sch.tensorize(sch.get_loops(start)[-2], names["init"])
    sch.tensorize(i3, names["compute"])
    return sch.mod["main"]


def tiles(sch, block, name):
    """The last two loops in tiles of 16 x 16, each of which the intrinsic computes."""
    i, j = sch.get_loops(block)[-2:]
    i0, i1 = sch.split(i, [None, 16])
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(i0, j0, i1, j1)
    sch.tensorize(i1, name)
