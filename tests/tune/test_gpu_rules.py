# SPDX-License-Identifier: Apache-2.0
"""Rules and postprocessors for devices other than the CPU: what they make of programs, and that the
interpreter computes the same with it."""

import numpy as np
import pytest
import tvm
from tvm import meta_schedule as ms
from tvm import te, tir
from tvm.meta_schedule import postproc, schedule_rule
from tvm.script import tir as T

from tests.tune import programs

GPU = tvm.target.Target(
    {"kind": "cuda", "max_threads_per_block": 64, "max_shared_memory_per_block": 4096}
)


def apply_rule(rule, func, block, target=GPU):
    context = ms.TuneContext(func, target=target)
    rule._initialize_with_tune_context(context)
    sch = tir.Schedule(context.mod, seed=1)
    return list(rule.apply(sch, sch.get_block(block)))


def apply_postproc(part, sch, target=GPU):
    part._initialize_with_tune_context(ms.TuneContext(sch.mod, target=target))
    return part.apply(sch)


def threads(sch):
    """{thread axis: extent}"""
    found = {}

    def visit(node):
        if isinstance(node, tir.For) and node.thread_binding is not None:
            found[str(node.thread_binding.thread_tag)] = int(node.extent)

    tir.stmt_functor.post_order_visit(sch.mod["main"].body, visit)
    return found


def same_results(func, sch):
    shapes = [[int(e) for e in func.buffer_map[p].shape] for p in func.params]
    rng = np.random.default_rng(0)
    inputs = [rng.random(s).astype("float32") for s in shapes]
    expected, got = ([a.copy() for a in inputs] for _ in range(2))
    tir.interpret(func)(*expected)
    tir.interpret(sch.mod["main"])(*got)
    np.testing.assert_allclose(got[-1], expected[-1], rtol=1e-4)


def test_auto_bind():
    func = programs.sigmoid()  # 64 x 64
    (sch,) = apply_rule(schedule_rule.AutoBind(thread_extents=[32]), func, "C")
    assert threads(sch) == {"blockIdx.x": 128, "threadIdx.x": 32}
    same_results(func, sch)
    (sch,) = apply_rule(schedule_rule.AutoBind(4, [32], 32), func, "C")
    assert threads(sch) == {"blockIdx.x": 4, "threadIdx.x": 32}
    same_results(func, sch)


def test_cross_thread_reduction_and_the_blocks_around_it():
    func = programs.row_sum()  # 64 rows of 128
    untouched, shared = apply_rule(schedule_rule.CrossThreadReduction([16]), func, "B")
    assert threads(untouched) == {} and threads(shared) == {"threadIdx.x": 16}
    (bound,) = schedule_rule.AutoBind().apply(shared, shared.get_block("B"))
    assert threads(bound) == {"blockIdx.x": 64, "threadIdx.x": 16}
    same_results(func, bound)
    with pytest.raises(ValueError, match="thread_extents: expected positive numbers, got 0"):
        schedule_rule.CrossThreadReduction([0])


def test_rewrite_unbound_block():
    func = programs.matmul(16, 16, 16)
    sch = tir.Schedule(ms.TuneContext(func).mod)
    assert apply_postproc(postproc.RewriteUnboundBlock(max_threadblocks=2), sch)
    assert threads(sch) == {"blockIdx.x": 2, "threadIdx.x": 64}
    same_results(func, sch)
    before = sch.mod
    assert apply_postproc(postproc.RewriteUnboundBlock(), sch)  # nothing is left to bind
    tvm.ir.assert_structural_equal(sch.mod, before)


@T.prim_func
def shared_copy(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 64), "float32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    A_shared = T.alloc_buffer((4, 64), scope="shared")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(16, thread="threadIdx.x"):
            for i in range(64):
                with T.block("A_shared"):
                    vb, vi = T.axis.remap("SS", [b, i])
                    T.block_attr({"meta_schedule.cooperative_fetch": 2})
                    A_shared[vb, vi] = A[vb, vi]
            for i in range(4):
                with T.block("B"):
                    vb = T.axis.spatial(4, b)
                    vi = T.axis.spatial(64, t * 4 + i)
                    B[vb, vi] = A_shared[vb, 63 - vi]


def test_rewrite_cooperative_fetch():
    @T.prim_func
    def expected(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 64), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        A_shared = T.alloc_buffer((4, 64), scope="shared")
        for b in T.thread_binding(4, thread="blockIdx.x"):
            for t in T.thread_binding(16, thread="threadIdx.x"):
                for i_0 in range(2):
                    for i_1 in T.thread_binding(16, thread="threadIdx.x"):
                        for i_2 in T.vectorized(2):
                            with T.block("A_shared"):
                                vb = T.axis.spatial(4, b)
                                vi = T.axis.spatial(64, i_0 * 32 + i_1 * 2 + i_2)
                                A_shared[vb, vi] = A[vb, vi]
                for i in range(4):
                    with T.block("B"):
                        vb = T.axis.spatial(4, b)
                        vi = T.axis.spatial(64, t * 4 + i)
                        B[vb, vi] = A_shared[vb, 63 - vi]

    sch = tir.Schedule(tvm.IRModule({"main": shared_copy}))
    assert apply_postproc(postproc.RewriteCooperativeFetch(), sch)
    tvm.ir.assert_structural_equal(sch.mod["main"], expected)


def test_copies_into_shared_memory_cover_all_threads():
    """Tiles of a product: each block of threads fetches what all of them need."""
    func = programs.matmul(64, 64, 64)
    context = ms.TuneContext(
        func,
        target=GPU,
        space_generator="post-order-apply",
        search_strategy="replay-trace",
        rand_state=3,
        num_threads=1,
    )
    (space,) = [s for s in context.generate_design_space() if "A_shared" in str(s.mod)]
    copy = space.get(space.get_block("A_shared"))
    outer = {str(space.get(loop).loop_var.name) for loop in space.get_loops("A_shared")[:3]}
    used = []
    tir.stmt_functor.post_order_visit(
        space.get(space.get_loops("A_shared")[-1]),
        lambda n: used.append(str(n.name)) if isinstance(n, tir.Var) else None,
    )
    assert copy.annotations["meta_schedule.cooperative_fetch"] is not None
    blocks, *inside = sorted(outer)
    assert not set(inside) & set(used)
    space.enter_postproc()
    assert apply_postproc(postproc.RewriteCooperativeFetch(), space)


@pytest.mark.parametrize(("threads_of_block", "fits"), [(64, True), (128, False)])
def test_verify_gpu_code_counts_threads(threads_of_block, fits):
    (sch,) = apply_rule(
        schedule_rule.AutoBind(256, [threads_of_block], 1024), programs.sigmoid(), "C"
    )
    assert apply_postproc(postproc.VerifyGPUCode(), sch) is fits


@pytest.mark.parametrize(("rows", "fits"), [(16, True), (64, False)])
def test_verify_gpu_code_counts_shared_memory(rows, fits):
    A = te.placeholder((rows, 64), name="A")
    C = te.compute((rows, 64), lambda i, j: A[rows - 1 - i, j] * 2, name="C")
    sch = tir.Schedule(ms.TuneContext(te.create_prim_func([A, C])).mod)
    copy = sch.cache_read("C", 0, "shared")
    block = sch.add_unit_loop(sch.get_loops("C")[0])
    sch.bind(block, "blockIdx.x")
    sch.compute_at(copy, block)
    assert apply_postproc(postproc.VerifyGPUCode(), sch) is fits  # 4 or 16 KiB


@pytest.mark.parametrize(("capacity", "fits"), [(0, True), (1 << 14, True), (1 << 13, False)])
def test_verify_vtcm_limit(capacity, fits):
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((64, 64), lambda i, j: B[63 - i, j] * 2, name="C")
    sch = tir.Schedule(ms.TuneContext(te.create_prim_func([A, C])).mod)
    sch.set_scope("B", 0, "global.vtcm")
    target = tvm.target.Target({"kind": "hexagon", "vtcm-capacity": capacity})
    assert apply_postproc(postproc.VerifyVTCMLimit(), sch, target) is fits


def test_rewrite_layout():
    A = te.placeholder((8, 16), name="A")
    B = te.placeholder((16, 32), name="B")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((8, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    func = te.create_prim_func([A, B, C]).with_attr("layout_free_buffers", [1])
    sch = tir.Schedule(ms.TuneContext(func).mod)
    i, j, r = sch.get_loops("C")
    outer, inner = sch.split(j, [None, 8])
    sch.reorder(outer, i, r, inner)
    assert apply_postproc(postproc.RewriteLayout(), sch)
    copy = sch.get(sch.get_block("B_global"))
    assert copy.annotations["meta_schedule.layout_rewrite_preproc"]
    assert [int(e) for e in copy.writes[0].buffer.shape] == [4, 16, 8]
    for removed, shape in ((True, [4, 16, 8]), (False, [16, 32])):
        infos = ms.arg_info.ArgInfo.from_entry_func(sch.mod, remove_preproc=removed)
        assert list(infos[1].shape) == shape
    same_results(func, sch)


def test_disallow_async_strided_mem_copy():
    def program(strided):
        A = te.placeholder((64, 64), name="A")
        read = (lambda i, j: A[j, i] + 1) if strided else (lambda i, j: A[i, j] + 1)
        B = te.compute((64, 64), read, name="B")
        sch = tir.Schedule(ms.TuneContext(te.create_prim_func([A, B])).mod)
        copy = sch.cache_read("B", 0, "shared")
        i, j = sch.get_loops("B")
        sch.compute_at(copy, i)
        sch.annotate(i, "software_pipeline_stage", [0, 1])
        sch.annotate(i, "software_pipeline_order", [0, 1])
        sch.annotate(i, "software_pipeline_async_stages", [0])
        return sch

    assert apply_postproc(postproc.DisallowAsyncStridedMemCopy(), program(False)) is True
    assert apply_postproc(postproc.DisallowAsyncStridedMemCopy(), program(True)) is False


def test_tiles_say_how_many_threads_they_may_have():
    rule = next(r for r in ms.ScheduleRule.create("cuda") if "Tiling" in type(r).__name__)
    (sch,) = apply_rule(rule, programs.matmul(), "C")
    block = sch.get(sch.get_block("C"))
    limits = [
        int(block.annotations[f"meta_schedule.thread_extent_{end}_inclusive"])
        for end in ("low", "high")
    ]
    assert limits == [32, 64]


def test_multi_level_tiling_wide_vector():
    func = programs.matmul(16, 64, 16)
    rule = schedule_rule.MultiLevelTilingWideVector("SRSRS", 1024)
    (sch,) = apply_rule(rule, func, "C", "llvm")
    loops = [sch.get(loop) for loop in sch.get_loops("C")]
    assert int(loops[-1].extent) == 32  # 1024 bits of float32
    same_results(func, sch)
    with pytest.raises(ValueError, match="vector_length_in_bits of at least 8, got 4"):
        schedule_rule.MultiLevelTilingWideVector("SRSRS", 4)


@pytest.mark.parametrize("kind", ["llvm", "cuda", "hexagon", "opencl"])
def test_default_sets(kind):
    assert ms.ScheduleRule.create(kind) and ms.Postproc.create(kind) and ms.Mutator.create(kind)
