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
        return gpu.Matmul.Config(2, 2, 2, 2, 4)


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
    assert [sch.get(x).loop_var.name for x in product.get_loops()] == ["i", "j", "k"]
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
    assert str(analysis.detect_dominant_read(sch.get(product.block_rv))) == "vi * 50 + vk"
    assert analysis.normalize(sch, product) is True
    assert product.dom_kind() == "SR"
    for func in (elementwise, row_sums):
        sch, (first, *_) = infos(func)
        assert analysis.is_gemv(sch, first) is None


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
