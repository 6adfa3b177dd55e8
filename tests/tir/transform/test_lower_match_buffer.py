# SPDX-License-Identifier: Apache-2.0
"""Replaces views of buffer regions inside blocks by accesses of the buffers themselves."""

import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, block, buffer, func, loop, region, store


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


def test_variables_of_the_view_get_their_values():
    @T.prim_func
    def before(A: T.Buffer((8, 16), "float32"), B: T.Buffer((4,), "int32")):
        with T.block("root"):
            with T.block("view"):
                T.reads(A[2:6, 4:8])
                T.writes(B[0:4])
                offset, outer = T.int32(), T.int32()
                M = T.match_buffer(A[2:6, 4:8], (4, 4), strides=[outer, 1], elem_offset=offset)
                B[0] = outer
                B[1] = offset
                B[2] = T.Cast("int32", M[1, 1])

    mod = tvm.tir.transform.LowerMatchBuffer()(tvm.IRModule({"main": before}))
    text = mod["main"].script()
    assert "B[0] = 16" in text and "B[1] = 36" in text and "A[3, 5]" in text


def test_sizes_of_parameters_are_not_negative():
    @T.prim_func
    def before(a: T.handle, B: T.Buffer((1,), "float32")):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        with T.block("root"):
            with T.block("view"):
                T.reads(A[0:n])
                T.writes(B[0])
                V = T.match_buffer(A[0:n], (T.max(n, 0),), offset_factor=1)
                B[0] = V[0]

    after = tt.LowerMatchBuffer()(tvm.IRModule({"main": before}))["main"]
    assert "B[0] = A[0]" in after.script()


def test_the_offset_of_a_view_counts_from_that_of_its_buffer():
    @T.prim_func
    def before(a: T.handle, B: T.Buffer((2,), "int32")):
        A = T.match_buffer(a, (8,), "int32", elem_offset=4)
        with T.block("root"):
            with T.block("view"):
                T.reads(A[2:6])
                T.writes(B[0:2])
                offset = T.int32()
                M = T.match_buffer(A[2:6], (4,), "int32", elem_offset=offset)
                B[0] = offset
                B[1] = M[1]

    text = tt.LowerMatchBuffer()(tvm.IRModule({"main": before}))["main"].script()
    assert "B[0] = 6" in text and "B[1] = A[3]" in text
