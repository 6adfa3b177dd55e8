# SPDX-License-Identifier: Apache-2.0
"""What the next line of a script relies on after a primitive or an analysis."""

import numpy as np
import pytest
import tvm
from tvm import meta_schedule as ms
from tvm import tir
from tvm.meta_schedule import postproc
from tvm.script import tir as T

from tests.tune import programs


def find(func, name):
    sch = tir.Schedule(func)
    return sch.get(sch.get_block(name))


# ---- regions ------------------------------------------------------------------------------------
def test_iterators_of_one_value_stay_in_detected_regions():
    @T.prim_func
    def func(A: T.Buffer((1, 128), "float32"), B: T.Buffer((1, 128), "float32")):
        for i, j in T.grid(1, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)

    block = find(func, "B")
    for region in (*block.reads, *block.writes):
        assert [str(r.min) for r in region.region] == ["vi", "vj"]


def test_an_index_read_from_memory_that_changes_is_no_point():
    @T.prim_func
    def func(S: T.Buffer((1,), "int32"), A: T.Buffer((8,), "int32")):
        with T.block("B"):
            for i in range(4):
                A[S[0]] = i
                S[0] = S[0] + 1

    written = {str(r.buffer.name): r.region for r in find(func, "B").writes}
    assert [(int(r.min), int(r.extent)) for r in written["A"]] == [(0, 8)]


# ---- loops --------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["parallel", "vectorize", "unroll"])
def test_loops_of_every_kind_are_split_and_fused(kind):
    sch = tir.Schedule(programs.doubled)
    (loop,) = sch.get_loops("B")
    getattr(sch, kind)(loop)
    outer, inner = sch.split(loop, [None, 8])
    assert [int(sch.get(x).kind) for x in (outer, inner)] == [tir.ForKind.SERIAL] * 2
    getattr(sch, kind)(inner)
    assert int(sch.get(sch.fuse(outer, inner)).kind) == tir.ForKind.SERIAL
    a, b = np.arange(256, dtype="float32"), np.zeros(256, "float32")
    tir.interpret(sch.mod["main"])(a, b)
    np.testing.assert_array_equal(b, 2 * a)


def test_annotated_and_bound_loops_are_not_split():
    sch = tir.Schedule(programs.doubled)
    (loop,) = sch.get_loops("B")
    sch.annotate(loop, "note", 1)
    with pytest.raises(tir.ScheduleError, match="without annotations"):
        sch.split(loop, [None, 8])
    sch.unannotate(loop, "note")
    sch.bind(loop, "threadIdx.x")
    with pytest.raises(tir.ScheduleError, match="expected a serial loop"):
        sch.split(loop, [None, 8])


def test_fusing_very_long_loops_needs_64_bits():
    @T.prim_func
    def func(A: T.Buffer((65536, 65536), "int8")):
        for i, j in T.grid(65536, 65536):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = T.int8(1)

    sch = tir.Schedule(func)
    loop = sch.get(sch.fuse(*sch.get_loops("A")))
    assert str(loop.loop_var.dtype) == "int64" and int(loop.extent) == 1 << 32


# ---- reductions ---------------------------------------------------------------------------------
def bound_reduction():
    sch = tir.Schedule(programs.row_sum(64, 128))
    sch.bind(sch.get_loops("B")[1], "threadIdx.x")
    return sch


def test_a_reduction_over_threads_is_not_decomposed():
    sch = bound_reduction()
    with pytest.raises(tir.ScheduleError, match="bound to threads"):
        sch.decompose_reduction("B", sch.get_loops("B")[0])


def test_the_tuner_leaves_a_reduction_over_threads():
    sch = bound_reduction()
    before = sch.mod
    part = postproc.RewriteReductionBlock()
    target = tvm.target.Target({"kind": "cuda", "max_threads_per_block": 1024})
    part._initialize_with_tune_context(ms.TuneContext(sch.mod, target=target))
    assert part.apply(sch)
    tvm.ir.assert_structural_equal(sch.mod, before)


def test_the_init_block_keeps_annotations():
    sch = tir.Schedule(programs.row_sum())
    sch.annotate("B", "note", "mine")
    init = sch.decompose_reduction("B", sch.get_loops("B")[1])
    assert sch.get(init).annotations["note"] == "mine"
    sch.unannotate(init, "note")
    assert "note" not in sch.get(init).annotations and "note" in sch.get(sch.get_block("B_update")).annotations


# ---- index maps ---------------------------------------------------------------------------------
def test_index_maps_are_compared_across_widths():
    narrow = tir.IndexMap.from_func(lambda i, j: (i * 4 + j,))
    wide = tir.IndexMap.from_func(lambda i, j: (i * 4 + j,), index_dtype="int64")
    other = tir.IndexMap.from_func(lambda i, j: (i * 8 + j,), index_dtype="int64")
    assert narrow.is_equivalent_to(wide) and wide.is_equivalent_to(narrow)
    assert not narrow.is_equivalent_to(other)


def test_an_access_annotated_with_points():
    sch = tir.Schedule(programs.doubled)
    sch.annotate_buffer_access(sch.get_block("B"), 0, "read", lambda v: [v])
    (region,) = sch.get(sch.get_block("B")).reads
    assert [(str(r.min), int(r.extent)) for r in region.region] == [("v", 1)]
