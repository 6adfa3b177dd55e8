# SPDX-License-Identifier: Apache-2.0
"""Primitives take what scripts write, as long as the results stay what they were."""

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T

from tests.schedule.checking import apply


@T.prim_func
def viewed(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            V = T.match_buffer(B[vi, vj], ())
            C[vi, vj] = V[()] + 1.0


@pytest.mark.parametrize(
    "primitives",
    [
        lambda s: s.set_scope("B", 0, "shared"),
        lambda s: s.unsafe_set_dtype("B", 0, "float64"),
        lambda s: s.set_axis_separator("B", ("write", 0), [1]),
        lambda s: s.cache_read("C", 0, "local"),
    ],
)
def test_views_change_along(primitives):
    sch = apply(viewed, primitives)
    (view,) = sch.get(sch.get_block("C")).match_buffers
    assert view.buffer.scope() == view.source.buffer.scope()
    assert view.buffer.dtype == view.source.buffer.dtype


def test_slices_have_constant_extents():
    @T.prim_func
    def func(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("C"):
                v = T.axis.spatial(16, i)
                T.reads(A[v - 1 : v + 2])
                T.writes(C[v])
                C[v] = A[v]

    sch = tir.Schedule(func)
    (read,) = sch.get(sch.get_block("C")).reads
    assert int(read.region[0].extent) == 3
    tvm.ir.assert_structural_equal(tvm.script.from_source(func.script()), func)
