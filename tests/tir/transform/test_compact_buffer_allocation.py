# SPDX-License-Identifier: Apache-2.0
"""Shrinks the buffers that blocks allocate to the regions that are accessed."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.fuzz.steps import run
from tests.tir.programs import floats
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


def test_compact_shrinks_to_the_accessed_row():
    passes = [
        tt.PlanAndUpdateBufferAllocationLocation(),
        tt.ConvertBlocksToOpaque(),
        tt.CompactBufferAllocation(),
    ]
    result = apply(passes, two_stages("root"))
    (b,) = result.body.block.body.body.block.alloc_buffers
    assert [int(e) for e in b.shape] == [1, 8]
    assert tir.analysis.verify_well_formed(result)


def test_lowered_allocations_shrink():
    """What is declared right below its allocation; a second view, or the pointer, keeps all."""

    @T.prim_func
    def before(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        for i in range(16):
            data = T.allocate([16, 16], "float32", "global")
            B = T.decl_buffer((16, 16), "float32", data=data)
            for j in range(4, 16):
                B[i, j] = A[i, j] + T.float32(1)
            for j in range(12):
                C[i, j] = B[i, 15 - j]

    @T.prim_func
    def expected(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        for i in range(16):
            data = T.allocate([1, 12], "float32", "global")
            B = T.decl_buffer((1, 12), "float32", data=data)
            for j in range(4, 16):
                B[0, j - 4] = A[i, j] + T.float32(1)
            for j in range(12):
                C[i, j] = B[0, 11 - j]

    @T.prim_func
    def viewed(C: T.Buffer((16, 16), "float32")):
        for i in range(16):
            data = T.allocate([16, 16], "float32", "global")
            B = T.decl_buffer((16, 16), "float32", data=data)
            flat = T.decl_buffer((256,), "float32", data=data)
            for j in range(16):
                B[i, j] = T.float32(1)
            for j in range(16):
                C[i, j] = flat[i * 16 + j]

    @T.prim_func
    def passed(C: T.Buffer((16, 16), "float32")):
        for i in range(16):
            data = T.allocate([16, 16], "float32", "global")
            B = T.decl_buffer((16, 16), "float32", data=data)
            B[i, 0] = T.float32(1)
            T.evaluate(T.call_extern("int32", "use", B.data))
            C[i, 0] = B[i, 0]

    check(tt.CompactBufferAllocation(), before, expected.with_attr("global_symbol", "before"))
    for one in (viewed, passed):
        check(tt.CompactBufferAllocation(), one, one)


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


@pytest.mark.parametrize("scope, size", [("shared", 8), ("local", 4)])
def test_memory_that_threads_share_holds_what_all_of_them_access(scope, size):
    @T.prim_func
    def before(A: T.Buffer((8,), "float32")):
        for t in T.thread_binding(2, "threadIdx.x"):
            with T.block(""):
                T.reads(A[0:8])
                T.writes(A[0:8])
                S = T.alloc_buffer((16,), scope=scope)
                for j in range(4):
                    S[t * 4 + j] = A[t * 4 + j]
                for j in range(4):
                    A[t * 4 + j] = S[t * 4 + 3 - j]

    mod = tt.CompactBufferAllocation()(tvm.IRModule({"main": before}))
    assert f'alloc_buffer(({size},), scope="{scope}")' in mod.script()
    A = floats(8)
    got = run(mod, A, threads="lockstep")[0]
    np.testing.assert_array_equal(got, A.reshape(2, 4)[:, ::-1].reshape(8))
