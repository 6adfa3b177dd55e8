# SPDX-License-Identifier: Apache-2.0
"""dlight: what rules look at, and the rules for GPUs"""

import pytest
import tvm
from tvm import dlight, tir
from tvm.dlight import analysis, base, gpu
from tvm.script import tir as T
from tvm.target import Target

from .checking import same_results
from .programs import dynamic, elementwise, matmul, shared_loop, two_stages
from .test_analysis import conv2d

CUDA = Target("cuda")


class Matmul(gpu.Matmul):
    """With tiles that are small enough for the interpreter."""

    def get_configs(self, target):
        return gpu.Matmul.Config(2, 2, 1, 1, 2, 2, 4)


RULES = [Matmul, gpu.GEMV, gpu.Transpose, gpu.Reduction, gpu.GeneralReduction, gpu.Fallback]


@T.prim_func
def row_sums(A: T.Buffer((6, 40), "float32"), C: T.Buffer((6,), "float32")):
    B = T.alloc_buffer((6,))
    for i, k in T.grid(6, 40):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = B[vi] / 40.0


@T.prim_func
def total(A: T.Buffer((40,), "float32"), C: T.Buffer((1,), "float32")):
    for k in range(40):
        with T.block("C"):
            vk = T.axis.reduce(40, k)
            with T.init():
                C[0] = 0.0
            C[0] = C[0] + A[vk]


@T.prim_func
def softmax(A: T.Buffer((5, 30), "float32"), D: T.Buffer((5, 30), "float32")):
    B = T.alloc_buffer((5,))
    E = T.alloc_buffer((5, 30))
    C = T.alloc_buffer((5,))
    for i, k in T.grid(5, 30):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.min_value("float32")
            B[vi] = T.max(B[vi], A[vi, vk])
    for i, j in T.grid(5, 30):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = T.exp(A[vi, vj] - B[vi])
    for i, k in T.grid(5, 30):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + E[vi, vk]
    for i, j in T.grid(5, 30):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = E[vi, vj] / C[vi]


@T.prim_func
def gemv(A: T.Buffer((7, 50), "float32"), x: T.Buffer((50,), "float32"), C: T.Buffer((7,))):
    for i, k in T.grid(7, 50):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vk] * x[vk]


@T.prim_func
def transpose(A: T.Buffer((2, 10, 20), "float32"), B: T.Buffer((20, 2, 10), "float32")):
    for i, j, k in T.grid(20, 2, 10):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vi, vj, vk] = A[vj, vk, vi]


PROGRAMS = {
    f.attrs["global_symbol"]: f
    for f in (elementwise, two_stages, dynamic, row_sums, total, softmax, gemv, transpose, matmul,
              conv2d)
}  # fmt: skip
# The rule that is the first to take each program.
FIRST = {
    "elementwise": gpu.Fallback, "two_stages": gpu.Fallback, "dynamic": gpu.Fallback,
    "row_sums": gpu.Reduction, "total": gpu.Reduction, "softmax": gpu.GeneralReduction,
    "gemv": gpu.GEMV, "transpose": gpu.Transpose, "matmul": Matmul, "conv2d": Matmul,
}  # fmt: skip


def threads(func):
    """The threads that the function's loops are bound to."""
    found = set()
    tir.stmt_functor.post_order_visit(
        func.body,
        lambda n: (
            found.add(str(n.thread_binding.thread_tag))
            if isinstance(n, tir.For) and n.thread_binding is not None
            else None
        ),
    )
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rule(name, rule):
    """Results stay; every block is on threads of blocks."""
    func = PROGRAMS[name]
    schedule = rule().apply(func, CUDA, False)
    first = RULES.index(FIRST[name])
    if RULES.index(rule) < first:
        assert schedule is None
    elif rule in (FIRST[name], gpu.Fallback):
        assert schedule is not None
    if schedule is None:
        return
    after = schedule.mod["main"]
    assert {"blockIdx.x", "threadIdx.x"} <= threads(after)
    tir.analysis.verify_well_formed(after)
    same_results(func, after, {"n": 5})
    for block in schedule.get_child_blocks(analysis.get_root_block(schedule)):
        loops = [schedule.get(loop) for loop in schedule.get_loops(block)]
        assert any(loop.thread_binding is not None for loop in loops)


def test_pass():
    mod = tvm.IRModule({"main": row_sums})
    with CUDA:
        mod = dlight.ApplyDefaultSchedule(*(rule() for rule in RULES))(mod)
    assert mod["main"].attrs["tir.is_scheduled"]
    with Target("llvm"):
        mod = dlight.ApplyDefaultSchedule(gpu.Fallback())(tvm.IRModule({"main": row_sums}))
    assert not tir.schedule.is_scheduled(mod["main"])


def test_rules_leave_what_is_not_plain():
    sch = tir.Schedule(elementwise)
    sch.split(sch.get_loops("B")[0], [None, 4])
    for rule in RULES:
        assert rule().apply(sch.mod["main"], CUDA, False) is None


def test_cpu_gemv():
    rule, target = dlight.cpu.GEMV(), Target("llvm")
    assert rule.is_target_available(target) and not rule.is_target_available(CUDA)
    schedule = rule.apply(gemv, target, False)
    same_results(gemv, schedule.mod["main"])
    assert rule.apply(elementwise, target, False) is None
    assert rule.apply(row_sums, target, False) is None


# ---- analysis ------------------------------------------------------------------------------------
def infos(func):
    sch = tir.Schedule(func)
    return sch, dlight.normalize_prim_func(sch)


def test_block_info():
    sch, (product,) = infos(matmul)
    assert product.dom_kind() == "SSR" and product.dom() == [16, 8, 12]
    assert product.is_reduction() and product.is_gemm() and not product.is_injective()
    assert not product.is_gemv() and not product.is_elementwise(sch)
    assert str(product) == 'BlockInfo("C", "SSR", [16, 8, 12])'
    assert str(product.iters[0]) == 'Iter("S", 16)'
    assert [sch.get(x).loop_var.name for x in product.get_loops()] == ["ax0", "ax1", "ax2"]
    sch, (one,) = infos(elementwise)
    assert one.is_elementwise(sch) and one.is_injective() and not one.is_reduction()
    sch, (moved,) = infos(transpose)
    assert moved.is_injective() and not moved.is_elementwise(sch)
    _, (product,) = infos(gemv)
    assert product.is_gemv() and not product.is_gemm()
    sch = tir.Schedule(elementwise)
    sch.split(sch.get_loops("B")[0], [None, 4])
    assert dlight.normalize_prim_func(sch) is None


def test_gemv_analysis():
    sch, (product,) = infos(gemv)
    assert [b.name for b in analysis.is_gemv(sch, product)] == ["x"]
    assert str(analysis.detect_dominant_read(sch.get(product.block_rv))) == "v0 * 50 + v1"
    assert analysis.normalize(sch, product) is True
    assert product.dom_kind() == "SR"
    for func in (elementwise, row_sums):
        sch, (first, *_) = infos(func)
        assert analysis.is_gemv(sch, first) is None


def test_iterators_of_extent_one_are_dropped():
    @T.prim_func
    def func(A: T.Buffer((1, 8, 1), "float32"), B: T.Buffer((1,), "float32")):
        for i, j, k in T.grid(1, 8, 1):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SRS", [i, j, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vj, vk]

    sch, (total,) = infos(func)
    assert total.dom_kind() == "SR" and total.dom() == [1, 8]
    same_results(func, sch.mod["main"])


def loops_of(schedule, name):
    """(extent, thread) of the loops around a block."""
    loops = [schedule.get(loop) for loop in schedule.get_loops(name)]
    return [(int(loop.extent), getattr(loop.thread_binding, "thread_tag", None)) for loop in loops]


def test_structure_of_reductions():
    """Each thread adds up a part in a register, then the threads add up the parts."""

    @T.prim_func
    def rows(A: T.Buffer((6, 64), "float32"), C: T.Buffer((6,), "float32")):
        for i, k in T.grid(6, 64):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]

    schedule = gpu.Reduction().apply(rows, CUDA, False)
    same_results(rows, schedule.mod["main"])
    threads = [(6, "blockIdx.x"), (64, "threadIdx.x")]
    assert loops_of(schedule, "C_rf_update") == [*threads, (1, None)]
    assert loops_of(schedule, "C_rf_init") == loops_of(schedule, "C") == threads
    assert str(schedule.get(schedule.get_block("C_rf_update")).writes[0].buffer.scope()) == "local"
    (_, _, last) = (schedule.get(x) for x in schedule.get_loops("C_rf_update"))
    assert last.annotations["pragma_auto_unroll_max_step"] == 256

    @T.prim_func
    def columns(A: T.Buffer((16, 8), "float32"), C: T.Buffer((8,), "float32")):
        for i, k in T.grid(8, 16):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vk, vi]

    schedule = gpu.Reduction().apply(columns, CUDA, False)
    same_results(columns, schedule.mod["main"])
    threads = [(1, "blockIdx.x"), (8, "threadIdx.x"), (16, "threadIdx.y")]
    assert loops_of(schedule, "C") == threads
    assert loops_of(schedule, "C_rf_update") == [*threads, (1, None)]


def test_structure_of_rows():
    schedule = gpu.GeneralReduction().apply(softmax, CUDA, False)
    for name in ("B", "C", "D"):
        loops = [schedule.get(loop) for loop in schedule.get_loops(name)]
        assert loops_of(schedule, name)[0] == (5, "blockIdx.x")
        assert loops_of(schedule, name)[-2:] == [(256, "threadIdx.x"), (1, None)]
        assert loops[-1].annotations["pragma_auto_unroll_max_step"] == 256


def test_structure_of_transposes():
    schedule = gpu.Transpose().apply(transpose, CUDA, False)
    assert (8, "threadIdx.y") in loops_of(schedule, "B")
    assert (16, "threadIdx.x") in loops_of(schedule, "B")


def test_sizes_of_fallback_and_products():
    schedule = gpu.Fallback().apply(elementwise, CUDA, False)
    assert loops_of(schedule, "B")[-1] == (1024, "threadIdx.x")
    config = gpu.Matmul().get_configs(CUDA)
    assert (config.block_size_x, config.block_size_y, config.micro_size_k) == (8, 16, 16)
    assert config.vector_size == 2 and config.storage_align


def test_broadcast_epilogue():
    sch = tir.Schedule(softmax)
    blocks = [sch.get_block(name) for name in "BCDE"]
    assert analysis.is_broadcast_epilogue(sch, blocks[1], blocks[2])
    sch = tir.Schedule(row_sums)
    assert not analysis.is_broadcast_epilogue(sch, sch.get_block("B"), sch.get_block("C"))


def test_inlining():
    sch, blocks = infos(two_stages)
    (left,) = base.try_inline(sch, blocks)
    assert left.name == "C"
    same_results(two_stages, sch.mod["main"])
    sch, blocks = infos(softmax)
    assert [b.name for b in base.try_inline_contiguous_spatial(sch, blocks)] == ["B", "C", "D"]
    sch, blocks = infos(shared_loop)
    assert len(base.try_inline(sch, blocks)) == 2


def test_sizes():
    assert [base.get_bytes(t) for t in ("float32", "int8", "float16x4", "bool")] == [4, 1, 8, 1]
    assert base.max_threads_per_block(CUDA) == 1024
    assert analysis.common_analysis.get_max_shared_memory_per_block(
        Target("nvidia/geforce-rtx-4090")
    ) == 49152  # fmt: skip
    with pytest.raises(ValueError, match="expected a target with max_shared_memory_per_block"):
        analysis.common_analysis.get_max_shared_memory_per_block(Target("llvm"))
    sch = tir.Schedule(matmul)
    loops = [sch.get(loop) for loop in sch.get_loops("C")]
    assert base.suggest_threads_per_block(CUDA, loops) == [4, 8, 8]
    sch = tir.Schedule(dynamic)
    assert base.get_extent(sch, sch.get_loops("B")[1]) == 8
    assert isinstance(base.get_extent(sch, sch.get_loops("B")[0]), tir.Var)
    base.auto_vectorize(sch, sch.get_loops("B")[0], 4)  # of unknown extent: nothing
    base.auto_vectorize(sch, sch.get_loops("B")[1], 4)
    kinds = [sch.get(loop).kind for loop in sch.get_loops("B")]
    assert kinds[-1] == tir.ForKind.VECTORIZED and len(kinds) == 3


# ---- sizes of products ---------------------------------------------------------------------------
def lines_of(config):
    class Sized(gpu.Matmul):
        def get_configs(self, target):
            return config

    schedule = Sized().apply(matmul, CUDA, False)
    same_results(matmul, schedule.mod["main"])
    return schedule.mod.script()


@pytest.mark.parametrize("option, text", [
    ({"vthread_y": 2}, 'T.thread_binding(2, thread="vthread.y")'),
    ({"vthread_x": 2}, 'T.thread_binding(2, thread="vthread.x")'),
    ({"vector_size": 2}, "in T.vectorized(2)"),
    ({"unroll": 16}, '"pragma_auto_unroll_max_step": 16'),
    ({"storage_align": True}, "buffer_dim_align"),
    ({"use_shared": True}, 'scope="shared"'),
    ({"block_size_x": 4, "block_size_y": 2}, 'T.thread_binding(8, thread="threadIdx.x")'),
])  # fmt: skip
def test_sizes_of_products(option, text):
    """Each option does something, and results stay."""
    small = {"block_size_x": 2, "block_size_y": 2, "micro_size_x": 2, "micro_size_y": 2,
             "micro_size_k": 4, "unroll": 0, "use_shared": False}  # fmt: skip
    needs_shared = {"vector_size", "storage_align"} & set(option)
    without = lines_of(gpu.Matmul.Config(**{**small, "use_shared": bool(needs_shared)}))
    if needs_shared:
        option = {**option, "use_shared": True}
    assert text not in without
    assert text in lines_of(gpu.Matmul.Config(**{**small, **option}))


def test_order_of_the_elements_of_a_thread():
    texts = [
        lines_of(gpu.Matmul.Config(2, 2, micro_size_x=4, micro_size_y=2, inner_x=inner))
        for inner in (False, True)
    ]
    assert texts[0] != texts[1]


def test_types_and_versions():
    sch = tir.Schedule(matmul)
    assert gpu.matmul.get_in_out_dtypes(sch.get(sch.get_block("C"))) == ("float32", "float32")
    sch = tir.Schedule(elementwise)
    with pytest.raises(ValueError, match="expected a block that reads two buffers"):
        gpu.matmul.get_in_out_dtypes(sch.get(sch.get_block("B")))
    names = ("sm_80", "sm_90a", "gfx90a", "sm_", "")
    assert [gpu.matmul.check_sm_version(name) for name in names] == [80, 90, -1, -1, -1]


def test_chains_of_consumers_are_inlined():
    sch = tir.Schedule(two_stages)
    gpu.matmul.auto_inline_consumer_chain(sch, sch.get_block("B"))
    assert len(sch.get_child_blocks(analysis.get_root_block(sch))) == 1
    same_results(two_stages, sch.mod["main"])


# ---- a few vectors -------------------------------------------------------------------------------
@T.prim_func
def low_batch(a: T.handle, W: T.Buffer((6, 16), "float32"), c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 16))
    C = T.match_buffer(c, (n, 6))
    B = T.alloc_buffer((n, 6))
    for i, j, k in T.grid(n, 6, 16):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[vi, vj] = 0.0
            B[vi, vj] = B[vi, vj] + A[vi, vk] * W[vj, vk]
    for i, j in T.grid(n, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(B[vi, vj], 0.0)


@T.prim_func
def low_batch_across(a: T.handle, W: T.Buffer((16, 6), "float32"), c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 16))
    C = T.match_buffer(c, (n, 6))
    for i, j, k in T.grid(n, 6, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vk, vj]


@T.prim_func
def low_batch_of_bytes(a: T.handle, W: T.Buffer((6, 16), "int8"), c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 16))
    C = T.match_buffer(c, (n, 6))
    D = T.alloc_buffer((6, 16))
    for j, k in T.grid(6, 16):
        with T.block("D"):
            vj, vk = T.axis.remap("SS", [j, k])
            D[vj, vk] = T.cast(W[vj, vk], "float32") * 0.5
    for i, j, k in T.grid(n, 6, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * D[vj, vk]


SMALL_GPU = Target({"kind": "cuda", "arch": "sm_80", "max_threads_per_block": 8})


@pytest.mark.parametrize("func", [low_batch, low_batch_across, low_batch_of_bytes])
@pytest.mark.parametrize("bucket", [1, 4])
def test_low_batch_gemv(func, bucket):
    schedule = gpu.LowBatchGEMV(bucket).apply(func, SMALL_GPU, False)
    after = schedule.mod["main"]
    assert {"blockIdx.y", "blockIdx.x", "threadIdx.x"} == threads(after)
    for n in (1, 5):
        same_results(func, after, {"n": n})


def test_low_batch_gemv_leaves_others():
    for func in (gemv, matmul, dynamic, row_sums, softmax):
        assert gpu.LowBatchGEMV().apply(func, CUDA, False) is None
    with pytest.raises(ValueError, match="LowBatchGEMV: expected a positive bucket, got 0"):
        gpu.LowBatchGEMV(0)


# ---- normalisation -------------------------------------------------------------------------------
@T.prim_func
def rms_norm(
    A: T.Buffer((6, 40), "float16"), W: T.Buffer((40,), "float16"), O: T.Buffer((6, 40), "float16")
):
    wide = T.alloc_buffer((6, 40))
    total = T.alloc_buffer((6,))
    root = T.alloc_buffer((6,))
    for i, j in T.grid(6, 40):
        with T.block("wide"):
            vi, vj = T.axis.remap("SS", [i, j])
            wide[vi, vj] = T.cast(A[vi, vj], "float32")
    for i, k in T.grid(6, 40):
        with T.block("total"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = 0.0
            total[vi] = total[vi] + wide[vi, vk] * wide[vi, vk]
    for i in range(6):
        with T.block("inverse"):
            vi = T.axis.spatial(6, i)
            root[vi] = T.rsqrt(total[vi] / 40.0 + 1e-5)
    for i, j in T.grid(6, 40):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = T.cast(wide[vi, vj] * root[vi], "float16") * W[vj]


def test_rms_norm():
    rule = gpu.RMSNorm()
    assert rule.is_target_available(CUDA) and not rule.is_target_available(Target("llvm"))
    after = rule.apply(rms_norm, SMALL_GPU, False).mod["main"]
    assert threads(after) == {"blockIdx.x", "threadIdx.x"}
    same_results(rms_norm, after)
    for func in (softmax, row_sums, elementwise, matmul):
        assert rule.apply(func, CUDA, False) is None
    sch = tir.Schedule(rms_norm)
    blocks = [sch.get(sch.get_block(name)) for name in ("wide", "total", "inverse", "O")]
    find = gpu.rmsnorm.identify_cast_or_load_block
    assert [find(b) for b in blocks] == [True, False, False, False]
    find = gpu.rmsnorm.identify_rsqrt_block
    assert [find(b) for b in blocks] == [False, False, True, False]
