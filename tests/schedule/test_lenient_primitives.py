# SPDX-License-Identifier: Apache-2.0
"""Primitives take what scripts write, as long as the results stay what they were."""

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import two_stages as stages


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


@pytest.mark.parametrize("kind", ["parallel", "vectorize"])
def test_a_block_may_compute_an_element_again(kind):
    @T.prim_func
    def func(A: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(128, i * i % 128)
                C[vi] = A[vi] * 2.0

    apply(func, lambda s: getattr(s, kind)(s.get_loops("B")[0]))


def test_a_block_that_updates_may_not_run_again():
    @T.prim_func
    def func(A: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(128, i * i % 128)
                C[vi] = C[vi] + A[vi]

    refused(func, lambda s: s.parallel(s.get_loops("B")[0]), "one to one")
    sch = tir.Schedule(func, enable_check=False)
    sch.parallel(sch.get_loops("B")[0])
    assert sch.get(sch.get_loops("B")[0]).kind == tir.ForKind.PARALLEL


def test_what_a_predicate_reads_is_inlined():
    @T.prim_func
    def func(A: T.Buffer((32,), "int32"), C: T.Buffer((32,), "float32")):
        B = T.alloc_buffer((32,), "int32")
        for i in range(32):
            with T.block("B"):
                vi = T.axis.remap("S", [i])
                B[vi] = A[vi] + 1
        for i in range(32):
            with T.block("C"):
                vi = T.axis.remap("S", [i])
                T.where(B[i] < 4)
                C[vi] = 1.0

    sch = apply(func, lambda s: s.compute_inline("B"))
    assert "B" not in [b.name for b in sch.get(sch.get_block("root")).alloc_buffers]


def test_factors_of_an_unknown_extent():
    @T.prim_func
    def func(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        C = T.match_buffer(c, (n,))
        for i in range(n):
            with T.block("C"):
                vi = T.axis.remap("S", [i])
                C[vi] = A[vi] * 2.0

    def primitives(sch):
        (loop,) = sch.get_loops("C")
        factors = sch.sample_perfect_tile(loop, 3)
        assert factors[0] is None and [int(sch.get(f)) for f in factors[1:]] == [1, 1]
        sch.split(loop, factors)

    apply(func, primitives, sizes={"n": 5})


def test_a_consumer_that_splits_an_index_moves_to_its_producer():
    @T.prim_func
    def func(A: T.Buffer((16, 16), "float32"), C: T.Buffer((256,), "float32")):
        B = T.alloc_buffer((16, 16))
        for i, j in T.grid(16, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0
        for i in range(256):
            with T.block("C"):
                v = T.axis.spatial(256, i)
                C[v] = B[v // 16, v % 16] + 1.0

    sch = apply(func, lambda s: s.reverse_compute_at("C", s.get_loops("B")[0]))
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("C")] == [16, 16]


def test_a_reduction_over_threads_moves_below_them():
    @T.prim_func
    def func(A: T.Buffer((4, 64), "float32"), S: T.Buffer((4,), "float32")):
        B = T.alloc_buffer((4, 64))
        for i, j in T.grid(4, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(4, 64):
            with T.block("S"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    S[vi] = 0.0
                S[vi] = S[vi] + B[vi, vj]

    def primitives(sch):
        i, j = sch.get_loops("B")
        sch.bind(i, "blockIdx.x")
        sch.bind(j, "threadIdx.x")
        sch.reverse_compute_at("S", j)

    sch = apply(func, primitives, run=False)
    lowered = tir.transform.LowerCrossThreadReduction()(sch.mod)
    assert "T.tvm_thread_allreduce" in lowered.script()


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


def test_what_is_used_through_its_pointer_is_cached():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = A[v] * 2.0
        for i in range(8):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                T.reads(B[v])
                T.writes(C[v])
                T.evaluate(T.call_extern("int32", "f", B.access_ptr("r"), C.access_ptr("w")))

    sch = tir.Schedule(func, debug_mask="all")
    sch.cache_read("C", 0, "local")
    sch.cache_write("C", 0, "local")
    call = sch.get(sch.get_block("C")).body.value
    assert [str(a.args[1].name) for a in call.args[1:]] == ["B_local", "C_local"]


def test_output_blocks_are_found_inside_of_others():
    sch = tir.Schedule(stages)
    sch.blockize(sch.get_loops("C")[1])
    names = [str(sch.get(b).name_hint) for b in sch.get_output_blocks("root")]
    assert names == ["C_o", "C"]


def test_maps_of_random_variables_and_names_behind_the_rest():
    def captured(sch):
        factor = sch.sample_categorical([4, 8], [0.5, 0.5])
        sch.transform_layout("B", ("write", 0), lambda i, j: [i, j // factor, j % factor])

    apply(stages, captured)
    sch = apply(
        stages, lambda s: s.transform_layout("B", ("write", 0), lambda i, *j, k: [k, *j, i])
    )
    assert "B[vj, vi]" in sch.mod.script()
    with pytest.raises(ValueError, match="expected at least 3 indices, got 2"):
        sch.transform_layout("B", ("write", 0), lambda *, i, j, k: [i])


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
