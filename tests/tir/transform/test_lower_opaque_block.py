# SPDX-License-Identifier: Apache-2.0
"""Turns blocks without iterators into allocations, conditions and plain statements."""

import tvm
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import block, buffer, check, func, loop, seq, store, when


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
