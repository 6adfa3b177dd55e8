# SPDX-License-Identifier: Apache-2.0
"""Blocks become loops, conditions and allocations."""

import pytest
import tvm
from tvm import tir
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
    when,
)


def _sum_rows(lowered):
    """C[i] = sum over k of A[i, k]"""
    A, C = buffer((4, 8), name="A"), buffer((4,), name="C")

    def body(i):
        def inner(k):
            vi, vk = tir.Var("vi", "int32"), tir.Var("vk", "int32")
            init = store(C, vi, 0.0)
            update = store(C, vi, C[vi] + A[vi, vk])
            iters = [(vi, 4, i), (vk, 8, k, "reduce")]
            if lowered:
                return block(iters, seq(when(vk == 0, init), update))
            return block(iters, update, init=init)

        return loop(8, inner, "k")

    return func([A, C], loop(4, body))


def test_lower_init_block_guards_the_first_iteration():
    check(tt.LowerInitBlock(), _sum_rows(False), _sum_rows(True))


def test_lower_init_block_without_reduction_is_unconditional():
    A = buffer((4,))
    vi = tir.Var("vi", "int32")

    def program(lowered):
        init, update = store(A, vi, 0.0), store(A, vi, A[vi] + 1.0)
        return func(
            [A],
            loop(
                4,
                lambda i: block(
                    [(vi, 4, i)],
                    seq(init, update) if lowered else update,
                    **({} if lowered else {"init": init}),
                ),
            ),
        )

    check(tt.LowerInitBlock(), program(False), program(True))


def test_convert_blocks_to_opaque_substitutes_iterators():
    A, B = buffer((64,), name="A"), buffer((64,), name="B")
    vi = tir.Var("vi", "int32")
    before = func(
        [A, B],
        loop(
            16,
            lambda i: block(
                [(vi, 64, i * 4)], store(B, vi, A[vi]), [region(A, vi)], [region(B, vi)]
            ),
        ),
    )
    expected = func(
        [A, B],
        loop(
            16,
            lambda i: block([], store(B, i * 4, A[i * 4]), [region(A, i * 4)], [region(B, i * 4)]),
        ),
    )
    check(tt.ConvertBlocksToOpaque(), before, expected)


def test_convert_blocks_to_opaque_needs_lowered_init():
    with pytest.raises(ValueError, match="expected block block without init"):
        apply(tt.ConvertBlocksToOpaque(), _sum_rows(False))


def test_lower_opaque_block_allocates_and_guards():
    A, B, C = buffer((8,), name="A"), buffer((16,), name="B"), buffer((8,), name="C")
    before = func(
        [A, C],
        loop(
            8,
            lambda i: block(
                [], seq(store(B, 0, A[i]), store(C, i, B[0])), predicate=i < 7, alloc_buffers=[B]
            ),
        ),
    )
    expected = func(
        [A, C],
        loop(
            8,
            lambda i: tir.Allocate(
                B.data,
                "float32",
                [16],
                tir.const(True),
                tir.DeclBuffer(B, when(i < 7, seq(store(B, 0, A[i]), store(C, i, B[0])))),
            ),
        ),
    )
    check(tt.LowerOpaqueBlock(), before, expected)


def test_lower_opaque_block_removes_loops_of_one_iteration():
    A = buffer((8,))
    before = func(
        [A], loop(1, lambda i: loop(8, lambda j: block([], store(A, i + j, 1.0)), "j"), begin=0)
    )
    check(
        [tt.LowerOpaqueBlock(), tt.Simplify()],
        before,
        func([A], loop(8, lambda j: store(A, j, 1.0))),
    )
    with tvm.transform.PassContext(config={"tir.debug_keep_trivial_loop": True}):
        kept = func([A], loop(1, lambda i: loop(8, lambda j: store(A, i + j, 1.0), "j")))
        check(tt.LowerOpaqueBlock(), before, kept)


def test_lower_opaque_block_makes_pragmas_attributes():
    A = buffer((8,))
    annotations = {"pragma_auto_unroll_max_step": 16, "mine": 1}
    before = func([A], loop(8, lambda i: store(A, i, 1.0), annotations=annotations))
    inner = loop(8, lambda i: store(A, i, 1.0), annotations={"mine": 1})
    expected = func([A], tir.AttrStmt(inner.loop_var, "pragma_auto_unroll_max_step", 16, inner))
    check(tt.LowerOpaqueBlock(), before, expected)


def _two_stages(place):
    """B = A + 1, then C = B * 2, row by row; B allocated at `place`."""
    A, B, C = (buffer((4, 8), name=n) for n in "ABC")

    def stage(out, value, i, name):
        vi, vj = tir.Var("vi", "int32"), tir.Var("vj", "int32")
        return loop(
            8,
            lambda j: block(
                [(vi, 4, i), (vj, 8, j)], store(out, [vi, vj], value(vi, vj)), name=name
            ),
            "j",
        )

    def row(i):
        both = seq(
            stage(B, lambda a, b: A[a, b] + 1.0, i, "B"),
            stage(C, lambda a, b: B[a, b] * 2.0, i, "C"),
        )
        if place != "loop":
            return both
        full = (0, 8)
        return block(
            [],
            both,
            [region(A, i, full), region(B, i, full)],
            [region(B, i, full), region(C, i, full)],
            name="",
            alloc_buffers=[B],
        )

    outer = [B] if place == "root" else []
    return func([A, C], block([], loop(4, row), name="root", alloc_buffers=outer))


def test_plan_allocation_moves_into_the_loop():
    result = apply(tt.PlanAndUpdateBufferAllocationLocation(), _two_stages("root"))
    root = result.body.block
    assert list(root.alloc_buffers) == []
    inner = root.body.body.block
    assert [b.name for b in inner.alloc_buffers] == ["B"]
    assert tir.analysis.verify_well_formed(result)


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


def test_compact_shrinks_to_the_accessed_row():
    passes = [
        tt.PlanAndUpdateBufferAllocationLocation(),
        tt.ConvertBlocksToOpaque(),
        tt.CompactBufferAllocation(),
    ]
    result = apply(passes, _two_stages("root"))
    (b,) = result.body.block.body.body.block.alloc_buffers
    assert [int(e) for e in b.shape] == [1, 8]
    assert tir.analysis.verify_well_formed(result)


def test_compact_honours_alignment():
    B, C = buffer((4, 8), name="B"), buffer((4, 8), name="C")
    nest = loop(
        4,
        lambda i: loop(
            8,
            lambda j: seq(
                block(
                    [],
                    store(B, [i, j], 1.0),
                    [],
                    [region(B, i, j)],
                    annotations={"buffer_dim_align": [[0, 0, 16, 4]]},
                ),
                store(C, [i, j], B[i, j]),
            ),
            "j",
        ),
    )
    result = apply(
        tt.CompactBufferAllocation(), func([C], block([], nest, name="root", alloc_buffers=[B]))
    )
    (b,) = result.body.block.alloc_buffers
    assert [int(s) for s in b.strides] == [20, 1]


def test_lower_match_buffer_offsets_accesses():
    A = buffer((32, 32), name="A")
    view = tir.decl_buffer(
        (4, 4),
        "float32",
        name="V",
        strides=[tir.Var("s", "int32"), 1],
        elem_offset=tir.Var("o", "int32"),
        offset_factor=1,
    )

    def body(i, lowered):
        if lowered:
            return block([], store(A, [i * 4 + 1, 2], 1.0))
        match = tir.MatchBufferRegion(view, region(A, (i * 4, 4), (0, 4)))
        return block([], store(view, [1, 2], 1.0), match_buffers=[match])

    before, expected = (func([A], loop(8, lambda i, k=k: body(i, k))) for k in (False, True))
    result = apply([tt.LowerMatchBuffer(), tt.Simplify()], before)
    tvm.ir.assert_structural_equal(result, apply(tt.Simplify(), expected), map_free_vars=True)
