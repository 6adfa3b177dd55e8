# SPDX-License-Identifier: Apache-2.0
"""Moves each allocation of a block to the innermost place that still encloses all accesses."""

import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import (
    apply,
    block,
    buffer,
    check,
    func,
    loop,
    region,
    seq,
    store,
    two_stages,
)


def test_plan_allocation_moves_into_the_loop():
    result = apply(tt.PlanAndUpdateBufferAllocationLocation(), two_stages("root"))
    root = result.body.block
    assert list(root.alloc_buffers) == []
    inner = root.body.body.block
    assert [b.name for b in inner.alloc_buffers] == ["B"]
    assert tir.analysis.verify_well_formed(result)


def test_the_block_in_the_loop_says_what_it_accesses():
    @T.prim_func
    def before(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
        B = T.alloc_buffer((4, 8))
        for i in range(4):
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + T.float32(1)
            for j in range(8):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj]

    result = apply(tt.PlanAndUpdateBufferAllocationLocation(), before)
    inner = result.body.block.body.body.block
    assert (str(inner.reads), str(inner.writes)) == ("(A[i, 0:8],)", "(C[i, 0:8],)")


def test_plan_allocation_keeps_what_a_serial_loop_carries():
    """A loop that no block iterator runs over may hand values from one iteration to the next."""
    A, S = buffer((8,), name="A"), buffer((9,), name="S")
    body = loop(8, lambda i: seq(store(S, i + 1, S[i] + A[i]), store(A, i, S[i + 1])))
    before = func([A], block([], body, name="root", alloc_buffers=[S]))
    check(tt.PlanAndUpdateBufferAllocationLocation(), before, before)


def test_plan_allocation_outside_of_a_reduction():
    """What a reduction accumulates lives outside the loop it runs over."""
    A, B, C = buffer((8, 16), name="A"), buffer((8,), name="B"), buffer((8,), name="C")
    vi, vk, vo = (tir.Var(n, "int32") for n in ("vi", "vk", "vo"))

    def row(i):
        update = store(B, vi, B[vi] + A[vi, vk])
        total = loop(
            16,
            lambda k: block(
                [(vi, 8, i), (vk, 16, k, "reduce")],
                update,
                [region(A, vi, vk)],
                [region(B, vi)],
                init=store(B, vi, 0.0),
            ),
            "k",
        )
        return seq(
            total, block([(vo, 8, i)], store(C, vo, B[vo]), [region(B, vo)], [region(C, vo)])
        )

    before = func([A, C], block([], loop(8, row), name="root", alloc_buffers=[B]))
    result = apply(tt.PlanAndUpdateBufferAllocationLocation(), before)
    assert [b.name for b in result.body.block.body.body.block.alloc_buffers] == ["B"]


def test_plan_allocation_of_what_a_reduction_reads_through_a_match():
    """Matching a buffer that the block does not write is reading it: one piece at a time."""
    before = tvm.script.from_source(
        """
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8,), "float32")):
    P = T.alloc_buffer((8, 16))
    for i, k in T.grid(8, 16):
        with T.block("copy"):
            vi, vk = T.axis.remap("SS", [i, k])
            P[vi, vk] = A[vi, vk] * T.float32(2)
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(C[vi], P[vi, vk])
            T.writes(C[vi])
            Q = T.match_buffer(P[vi, vk], (1, 1), offset_factor=1)
            C[vi] = C[vi] + Q[0, 0]
"""
    )
    passes = [
        tt.PlanAndUpdateBufferAllocationLocation(),
        tt.ConvertBlocksToOpaque(),
        tt.CompactBufferAllocation(),
    ]
    result = apply(passes, before)
    (piece,) = result.body.block.body.body.body.block.alloc_buffers
    assert [int(e) for e in piece.shape] == [1, 1]
    assert tir.analysis.verify_well_formed(result)
