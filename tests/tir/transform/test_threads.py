# SPDX-License-Identifier: Apache-2.0
"""Passes for GPUs, checked by running programs before and after in the interpreter."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.tir import interpret
from tvm.tir import transform as tt

from tests.fuzz.steps import LOWERING, SYNCHRONIZED, check_every_step, run

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype("float32")


@T.prim_func
def transpose(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    S = T.alloc_buffer((8, 8), scope="shared")
    for b in T.thread_binding(2, "blockIdx.x"):
        for i in T.serial(4):
            for t in T.thread_binding(4, "threadIdx.x"):
                for j in T.vectorized(2):
                    with T.block("S"):
                        v0 = T.axis.spatial(8, b * 4 + i)
                        v1 = T.axis.spatial(8, t * 2 + j)
                        S[v0, v1] = A[v0, v1]
        for i in T.serial(8):
            for t in T.thread_binding(4, "threadIdx.x"):
                with T.block("B"):
                    v0 = T.axis.spatial(8, i)
                    v1 = T.axis.spatial(8, b * 4 + t)
                    B[v0, v1] = S[v1, v0]


def test_shared_memory():
    A = floats(8, 8)
    mod = check_every_step(transpose, [A, np.zeros_like(A)])
    np.testing.assert_array_equal(run(mod, A, np.zeros_like(A))[1], A.T)
    script = mod["main_kernel"].script()
    assert script.count("tvm_storage_sync") == 1
    assert "decl_buffer((32,)" in script, "the tile of one block only"


@T.prim_func
def row_sums(A: T.Buffer((2, 12), "float32"), B: T.Buffer((2,), "float32")):
    for i in T.thread_binding(2, "blockIdx.x"):
        for k in T.serial(3):
            for t in T.thread_binding(4, "threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(2, i)
                    vk = T.axis.reduce(12, k * 4 + t)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]


@pytest.mark.parametrize("target", ["opencl", {"kind": "cuda", "thread_warp_size": 4}])
def test_cross_thread_reduction(target):
    A = floats(2, 12)
    mod = check_every_step(row_sums, [A, np.zeros(2, "float32")], target)
    np.testing.assert_allclose(run(mod, A, np.zeros(2, "float32"))[1], A.sum(1), rtol=1e-5)
    assert ("tvm_warp_shuffle" in mod["main_kernel"].script()) == isinstance(target, dict)


@T.prim_func
def row_max_and_where(
    A: T.Buffer((2, 6), "float32"), where: T.Buffer((2,), "int32"), top: T.Buffer((2,), "float32")
):
    for i in T.thread_binding(2, "threadIdx.y"):
        for t in T.thread_binding(6, "threadIdx.x"):
            with T.block("argmax"):
                vi, vk = T.axis.remap("SR", [i, t])
                with T.init():
                    where[vi] = -1
                    top[vi] = T.min_value("float32")
                v_where: T.int32 = T.Select(top[vi] >= A[vi, vk], where[vi], vk)
                v_top: T.float32 = T.Select(top[vi] >= A[vi, vk], top[vi], A[vi, vk])
                where[vi] = v_where
                top[vi] = v_top


def test_cross_thread_reduction_of_two_values():
    A = floats(2, 6)
    out = [np.zeros(2, "int32"), np.zeros(2, "float32")]
    mod = check_every_step(row_max_and_where, [A, *out])
    _, where, top = run(mod, A, *out)
    np.testing.assert_array_equal(where, A.argmax(1))
    np.testing.assert_array_equal(top, A.max(1))


@T.prim_func
def softmax(A: T.Buffer((2, 4), "float32"), B: T.Buffer((2, 4), "float32")):
    top = T.alloc_buffer((2,), scope="shared")
    total = T.alloc_buffer((2,), scope="shared")
    for b in T.thread_binding(2, "blockIdx.x"):
        for t in T.thread_binding(4, "threadIdx.x"):
            with T.block("top"):
                vi, vk = T.axis.remap("SR", [b, t])
                with T.init():
                    top[vi] = T.min_value("float32")
                top[vi] = T.max(top[vi], A[vi, vk])
        for t in T.thread_binding(4, "threadIdx.x"):
            with T.block("total"):
                vi, vk = T.axis.remap("SR", [b, t])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] = total[vi] + T.exp(A[vi, vk] - top[vi])
        for t in T.thread_binding(4, "threadIdx.x"):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [b, t])
                B[vi, vj] = T.exp(A[vi, vj] - top[vi]) / total[vi]


def test_cross_thread_reduction_beside_other_statements_is_an_error():
    @T.prim_func
    def shared_loop(A: T.Buffer((8, 32), "float32"), B: T.Buffer((1,), "float32")):
        C = T.alloc_buffer((8, 32), scope="local")
        for t in T.thread_binding(32, "threadIdx.x"):
            for o in range(8):
                with T.block("C"):
                    vo, vt = T.axis.remap("SS", [o, t])
                    C[vo, vt] = A[vo, vt]
                with T.block("B"):
                    vo, vt = T.axis.remap("RR", [o, t])
                    with T.init():
                        B[0] = T.float32(0)
                    B[0] = B[0] + C[vo, vt]

    with pytest.raises(ValueError, match="expected block B, .* but loop o has other statements"):
        tt.LowerCrossThreadReduction()(tvm.IRModule({"main": shared_loop}))


def test_softmax():
    A = floats(2, 4)
    mod = check_every_step(softmax, [A, np.zeros_like(A)])
    e = np.exp(A - A.max(1, keepdims=True))
    expected = e / e.sum(1, keepdims=True)
    np.testing.assert_allclose(run(mod, A, np.zeros_like(A))[1], expected, rtol=1e-4)


@T.prim_func
def pipelined(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for t in T.thread_binding(8, "threadIdx.x"):
        for i in T.serial(
            6,
            annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]},
        ):
            with T.block("body"):
                T.reads(A[i, 0:8])
                T.writes(B[i, 0:8])
                S = T.alloc_buffer((8,), scope="shared")
                with T.block("S"):
                    T.reads(A[i, t])
                    T.writes(S[t])
                    S[t] = A[i, t]
                with T.block("B"):
                    T.reads(S[7 - t])
                    T.writes(B[i, t])
                    B[i, t] = S[7 - t] * T.float32(2)


def test_software_pipeline_of_shared_memory():
    A = floats(6, 8)
    func = tt.InjectSoftwarePipeline()(tvm.IRModule({"main": pipelined}))["main"]
    got = run(func, A, np.zeros_like(A), threads="lockstep")[1]
    np.testing.assert_array_equal(got, A[:, ::-1] * 2)
    mod = tvm.IRModule({"main": pipelined})
    for step in [*LOWERING[5:], *SYNCHRONIZED]:
        mod = step(mod)
    for order in ("forward", "backward"):
        got = run(mod, A, np.zeros_like(A), threads=order)[1]
        np.testing.assert_array_equal(got, A[:, ::-1] * 2)


@pytest.mark.parametrize(
    "stages, order",
    [
        ([0, 0, 1], [0, 1, 2]),
        ([0, 1, 2], [2, 1, 0]),
        ([0, 1, 1], [1, 0, 2]),
        ([0, 2, 3], [0, 1, 2]),
    ],
)
@pytest.mark.parametrize("extent", [1, 2, 3, 9])
def test_software_pipeline_orders(stages, order, extent):
    annotations = {"software_pipeline_stage": stages, "software_pipeline_order": order}

    @T.prim_func
    def before(A: T.Buffer((9,), "float32"), D: T.Buffer((9,), "float32"), n: T.int32):
        for i in T.serial(n, annotations=annotations):
            with T.block(""):
                T.reads(A[i])
                T.writes(D[i])
                B = T.alloc_buffer((1,))
                C = T.alloc_buffer((1,))
                B[0] = A[i] + T.float32(1)
                C[0] = B[0] * T.float32(2)
                D[i] = C[0] + B[0]

    A = floats(9)
    expected, got = np.zeros(9, "float32"), np.zeros(9, "float32")
    interpret(before)(A, expected, extent)
    dynamic = tt.InjectSoftwarePipeline()(tvm.IRModule({"main": before}))
    tir.analysis.verify_well_formed(dynamic)
    interpret(dynamic)(A, got, extent)
    np.testing.assert_array_equal(got, expected)
    fixed = tvm.IRModule({"main": before.specialize({before.params[2]: extent})})
    got[:] = 0
    interpret(tt.InjectSoftwarePipeline()(fixed))(A, got)
    np.testing.assert_array_equal(got, expected)


def test_software_pipeline_async_counts():
    @T.prim_func
    def before(A: T.Buffer((9,), "float32"), D: T.Buffer((9,), "float32")):
        for i in T.serial(
            9,
            annotations={
                "software_pipeline_stage": [0, 2],
                "software_pipeline_order": [0, 1],
                "software_pipeline_async_stages": [0],
            },
        ):
            with T.block(""):
                T.reads(A[i])
                T.writes(D[i])
                B = T.alloc_buffer((1,))
                B[0] = A[i]
                D[i] = B[0]

    after = tt.InjectSoftwarePipeline()(tvm.IRModule({"main": before}))
    counts = []
    tir.stmt_functor.post_order_visit(
        after["main"].body,
        lambda n: (
            counts.append(int(n.value))
            if isinstance(n, tir.AttrStmt) and n.attr_key == "async_wait_inflight_count"
            else None
        ),
    )
    assert counts == [2, 1, 0], "two copies may run in the loop, then fewer"


@pytest.mark.parametrize(
    "annotations, message",
    [
        ({"software_pipeline_stage": [0]}, "expected a stage and a place"),
        ({"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 0]}, "once"),
        ({"software_pipeline_stage": [1, 0]}, "later stage"),
        ({"software_pipeline_order": [0, 1]}, "beside"),
        ({"software_pipeline_stage": "x"}, "list of integers"),
    ],
)
def test_software_pipeline_errors(annotations, message):
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i in T.serial(8, annotations=annotations):
            with T.block(""):
                T.reads(A[i])
                T.writes(C[i])
                B = T.alloc_buffer((1,))
                B[0] = A[i]
                C[i] = B[0]

    with pytest.raises((ValueError, TypeError), match=message):
        tt.InjectSoftwarePipeline()(tvm.IRModule({"main": before}))


@pytest.mark.parametrize("split", [1, 2, 3])
def test_double_buffer(split):
    @T.prim_func
    def before(A: T.Buffer((40,), "float32"), C: T.Buffer((40,), "float32")):
        for i in range(10):
            B_data = T.allocate([4], "float32", "global")
            B = T.decl_buffer((4,), data=B_data)
            with T.attr(B_data, "double_buffer_scope", 1):
                for j in range(4):
                    B[j] = A[i * 4 + j]
            for j in range(4):
                C[i * 4 + j] = B[3 - j]

    A, C = floats(40), np.zeros(40, "float32")
    with tvm.transform.PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": split}}):
        mod = tt.InjectDoubleBuffer()(tvm.IRModule({"main": before}))
    tir.analysis.verify_well_formed(mod)
    interpret(mod)(A, C)
    np.testing.assert_array_equal(C.reshape(10, 4), A.reshape(10, 4)[:, ::-1])
    assert "allocate([8]" in mod.script() or "decl_buffer((8,)" in mod.script()


def test_double_buffer_of_a_loop_that_is_gone():
    """Its one iteration fills what it uses: the allocation stays where it is."""

    @T.prim_func
    def before(A: T.Buffer((8,), "float32")):
        for k in range(3):
            B_data = T.allocate([8], "float32", "global")
            B = T.decl_buffer((8,), data=B_data)
            if A[0] > T.float32(k):
                with T.attr(B_data, "double_buffer_scope", 1):
                    for j in range(8):
                        B[j] = A[j]
                for j in range(8):
                    A[j] = B[7 - j]

    mod = tvm.IRModule({"main": before})
    tvm.ir.assert_structural_equal(tt.InjectDoubleBuffer()(mod), mod)


def test_virtual_threads():
    @T.prim_func
    def before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for v in T.thread_binding(2, "vthread"):
            for t in T.thread_binding(8, "threadIdx.x"):
                with T.block(""):
                    T.reads(A[0:64])
                    T.writes(B[0:64])
                    L = T.alloc_buffer((4,), scope="local")
                    for i in range(4):
                        L[i] = A[v * 32 + t * 4 + i]
                    if v == 1:
                        L[0] = T.float32(5)
                    for i in range(4):
                        B[v * 32 + t * 4 + i] = L[3 - i]

    A = floats(64)
    expected = run(before, A, np.zeros_like(A))[1]
    mod = tvm.IRModule({"main": before})
    for step in (tt.LowerOpaqueBlock(), tt.FlattenBuffer(), tt.InjectVirtualThread()):
        mod = step(mod)
        np.testing.assert_array_equal(run(mod, A, np.zeros_like(A))[1], expected)
    assert "virtual_thread" not in mod.script() and "vthread" not in mod.script()


# ---- barriers -----------------------------------------------------------------------------------
def barriers(func, scope="shared"):
    mod = tt.ThreadSync(scope)(tvm.IRModule({"main": func}))
    return mod.script().count("tvm_storage_sync"), mod


def test_barrier_inside_of_a_loop():
    @T.prim_func
    def before(A: T.Buffer((3, 8), "float32"), B: T.Buffer((3, 8), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([8], "float32", "shared")
        S = T.decl_buffer((8,), data=S_data, scope="shared")
        for i in range(3):
            S[t] = A[i, t]
            B[i, t] = S[7 - t]

    count, mod = barriers(before)
    assert count == 2, "before reading, and before the next iteration writes"
    A = floats(3, 8)
    for order in ("forward", "backward"):
        got = run(mod, A, np.zeros_like(A), threads=order)[1]
        np.testing.assert_array_equal(got, A[:, ::-1])


def test_no_barrier_for_memory_of_one_thread():
    @T.prim_func
    def before(A: T.Buffer((64,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([64], "float32", "shared")
        S = T.decl_buffer((64,), data=S_data, scope="shared")
        for i in range(8):
            S[t * 8 + i] = A[t * 8 + i]
        for i in range(8):
            A[t * 8 + i] = S[t * 8 + i] + T.float32(1)

    assert barriers(before)[0] == 0


def test_no_barrier_where_there_are_those_that_are_needed():
    @T.prim_func(private=True)
    def reverse(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        i = T.launch_thread("threadIdx.x", 32)
        S_data = T.allocate([32], "float32", "shared")
        S = T.decl_buffer((32,), data=S_data, scope="shared")
        with T.attr(0, "own_barriers", 1):
            S[i] = A[i]
            T.tvm_storage_sync("shared")
            B[i] = S[31 - i]
            S[31 - i] = A[i]

    mod = tvm.IRModule({"main": reverse})
    tvm.ir.assert_structural_equal(tt.ThreadSync("shared")(mod), mod)


def test_no_barrier_for_disjoint_halves():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([16], "float32", "shared")
        S = T.decl_buffer((16,), data=S_data, scope="shared")
        S[t] = A[t]
        S[15 - t] = A[t]

    assert barriers(before)[0] == 0


def test_barrier_under_a_condition_of_all_threads():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), n: T.int32):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([8], "float32", "shared")
        S = T.decl_buffer((8,), data=S_data, scope="shared")
        if n > 3:
            S[t] = A[t]
            A[t] = S[7 - t]

    assert barriers(before)[0] == 1


def test_barrier_under_a_condition_of_some_threads_is_an_error():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([8], "float32", "shared")
        S = T.decl_buffer((8,), data=S_data, scope="shared")
        if t < 4:
            S[t] = A[t]
            A[t] = S[3 - t]

    with pytest.raises(ValueError, match="conditions that depend on the thread"):
        barriers(before)


def test_missing_barrier_is_seen_by_the_interpreter():
    @T.prim_func
    def racy(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), scope: T.int32):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([8], "float32", "shared")
        S = T.decl_buffer((8,), data=S_data, scope="shared")
        S[t] = A[t]
        T.tvm_storage_sync("shared")
        S[t] = S[t] + T.float32(1)
        B[t] = S[7 - t]

    A, results = floats(8), []
    for order in ("forward", "backward"):
        B = np.zeros_like(A)
        interpret(racy, order)(A, B, 0)
        results.append(B)
    assert not np.array_equal(*results)


def test_threads_that_miss_a_barrier():
    @T.prim_func
    def diverges(A: T.Buffer((8,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        if t < 4:
            T.tvm_storage_sync("shared")
        A[t] = T.float32(1)

    with pytest.raises(ValueError, match="meet at a barrier"):
        interpret(diverges)(floats(8))


def test_order_of_threads_has_a_name():
    with pytest.raises(ValueError, match="forward, backward or lockstep, got 'random'"):
        interpret(transpose, threads="random")


# ---- errors -------------------------------------------------------------------------------------
def test_unify_needs_one_extent():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32")):
        for b in T.thread_binding(2, "blockIdx.x"):
            for t in T.thread_binding(8, "threadIdx.x"):
                A[t] = T.float32(b)
            for t in T.thread_binding(4, "threadIdx.x"):
                A[t] = T.float32(b)

    with pytest.raises(ValueError, match="one extent of threadIdx.x in a kernel, got 8 and 4"):
        tt.UnifyThreadBinding()(tvm.IRModule({"main": before}))


def test_kernels_one_after_the_other_stay_apart():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for t in T.thread_binding(8, "threadIdx.x"):
            A[t] = T.float32(1)
        for t in T.thread_binding(4, "threadIdx.x"):
            B[t] = A[t]

    mod = tvm.IRModule({"main": before})
    tvm.ir.assert_structural_equal(tt.LiftThreadBinding()(mod), mod)
    tvm.ir.assert_structural_equal(tt.UnifyThreadBinding()(mod), mod)


def test_cross_thread_reduction_of_another_form():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for t in T.thread_binding(8, "threadIdx.x"):
            with T.block("B"):
                vk = T.axis.reduce(8, t)
                with T.init():
                    B[0] = T.float32(0)
                B[0] = T.exp(B[0]) - A[vk]

    with pytest.raises(ValueError, match="block B, which reduces over threads"):
        tt.LowerCrossThreadReduction()(tvm.IRModule({"main": before}))


def test_warp_memory_must_be_written_by_its_thread():
    @T.prim_func
    def before(A: T.Buffer((32,), "float32")):
        T.func_attr({"target": T.target("cuda")})
        t = T.launch_thread("threadIdx.x", 32)
        W_data = T.allocate([32], "float32", "warp")
        W = T.decl_buffer((32,), data=W_data, scope="warp")
        W[t * t] = A[t]
        A[t] = W[t]

    with pytest.raises(ValueError, match="LowerWarpMemory: expected warp memory"):
        tt.LowerWarpMemory()(tvm.IRModule({"main": before}))


def test_warp_memory_runs():
    @T.prim_func
    def before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.func_attr({"target": T.target({"kind": "cuda", "thread_warp_size": 8})})
        t = T.launch_thread("threadIdx.x", 16)
        W_data = T.allocate([32], "float32", "warp")
        W = T.decl_buffer((32,), data=W_data, scope="warp")
        for i in range(4):
            W[(t % 8) * 4 + i] = A[t * 4 + i]
        for i in range(4):
            B[t * 4 + i] = W[((t + 3) % 8) * 4 + i]

    mod = tt.LowerWarpMemory()(tvm.IRModule({"main": before}))
    A, B, C = floats(64), np.zeros(64, "float32"), np.zeros(64, "float32")
    interpret(mod)(A, B)
    lanes = A.reshape(2, 8, 4)
    np.testing.assert_array_equal(B.reshape(2, 8, 4), np.roll(lanes, -3, 1))
    interpret(tvm.IRModule({"main": before}), threads="lockstep")(A, C)
    np.testing.assert_array_equal(C, B)


def test_warp_memory_at_an_index_with_a_name():
    """As CommonSubexprElimTIR leaves it."""

    @T.prim_func
    def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        T.func_attr({"target": T.target({"kind": "cuda", "thread_warp_size": 8})})
        t = T.launch_thread("threadIdx.x", 8)
        W_data = T.allocate([16], "float32", "warp")
        W = T.decl_buffer((16,), data=W_data, scope="warp")
        first: T.int32 = t * 2
        for i in range(2):
            W[first + i] = A[first + i]
        for i in range(2):
            B[first + i] = W[((t + 3) % 8) * 2 + i]

    mod = tt.LowerWarpMemory()(tvm.IRModule({"main": before}))
    A, B = floats(16), np.zeros(16, "float32")
    interpret(mod)(A, B)
    np.testing.assert_array_equal(B.reshape(8, 2), np.roll(A.reshape(8, 2), -3, 0))


def test_warp_memory_read_by_some_threads():
    """The threads that are asked must answer."""

    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.func_attr({"target": T.target({"kind": "cuda", "thread_warp_size": 8})})
        t = T.launch_thread("threadIdx.x", 8)
        W_data = T.allocate([8], "float32", "warp")
        W = T.decl_buffer((8,), data=W_data, scope="warp")
        W[t] = A[t]
        if t < 4:
            B[t] = W[(t + 4) % 8]

    with pytest.raises(ValueError, match="to be read by all threads of a warp, got a read in a"):
        tt.LowerWarpMemory()(tvm.IRModule({"main": before}))


def test_dynamic_launch():
    @T.prim_func
    def before(a: T.handle, n: T.int32):
        T.func_attr({"target": T.target("opencl", host="c"), "global_symbol": "main"})
        A = T.match_buffer(a, (n * 4,))
        b = T.launch_thread("blockIdx.x", n)
        t = T.launch_thread("threadIdx.x", 4)
        A[b * 4 + t] = T.float32(1)

    mod = tvm.IRModule({"main": before})
    for step in (tt.AnnotateDeviceRegions(), tt.SplitHostDevice(), tt.LowerDeviceKernelLaunch()):
        mod = step(mod)
    kernel = mod["main_kernel"]
    assert list(kernel.attrs["tir.kernel_launch_params"]) == ["blockIdx.x", "threadIdx.x"]
    assert int(kernel.attrs["calling_conv"]) == 2
    assert 'T.tvm_call_packed("main_kernel", A.data, n, n, 4)' in mod["main"].script()


def test_default_pipeline_for_a_device():
    target = tvm.target.Target("opencl", host="llvm")
    mod = tvm.IRModule({"main": transpose.with_attr("global_symbol", "main")})
    mod = tt.BindTarget(target)(mod)
    with target:
        mod = tir.get_default_tir_pipeline(target)(mod)
    names = {v.name_hint for v in mod.functions}
    assert {"main", "main_compute_", "main_kernel"} <= names
    assert str(mod["main_kernel"].attrs["target"].kind) == "opencl"
    assert str(mod["main"].attrs["target"].kind) == "llvm"
    assert "call_packed" in mod["main_compute_"].script()


@I.ir_module
class TwoKernels:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.func_attr({"target": T.target("opencl", host="c")})
        with T.launch_thread("threadIdx.x", 8) as t:
            B[t] = A[t] + T.float32(1)
        with T.launch_thread("threadIdx.x", 8) as t:
            A[t] = B[t] * T.float32(2)


def test_each_kernel_is_a_function():
    mod = tt.SplitHostDevice()(tt.AnnotateDeviceRegions()(TwoKernels))
    assert {v.name_hint for v in mod.functions} == {"main", "main_kernel", "main_kernel_1"}
    A = floats(8)
    got = run(mod, A, np.zeros_like(A))
    np.testing.assert_allclose(got[0], (A + 1) * 2)


def test_memory_of_a_pipelined_block_stays_in_the_loop():
    """Allocated outside, the second load would replace what the first use still needs."""
    notes = {"software_pipeline_stage": [0, 2], "software_pipeline_order": [1, 0]}

    @T.prim_func
    def before(A: T.Buffer((4, 2), "float32"), B: T.Buffer((4, 2), "float32")):
        for t in T.thread_binding(2, "threadIdx.x"):
            for r in T.serial(4, annotations=notes):
                with T.block("rows"):
                    T.reads(A[r, t])
                    T.writes(B[r, t])
                    P = T.alloc_buffer((1,), scope="local")
                    with T.block("load"):
                        T.reads(A[r, t])
                        T.writes(P[0])
                        P[0] = A[r, t]
                    with T.block("use"):
                        T.reads(P[0])
                        T.writes(B[r, t])
                        B[r, t] = P[0] + T.float32(1)

    A = floats(4, 2)
    mod = check_every_step(before, [A, np.zeros_like(A)])
    np.testing.assert_array_equal(run(mod, A, np.zeros_like(A))[1], A + 1)


def test_local_stage_of_a_block_without_iterators():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        S = T.alloc_buffer((8,), scope="shared")
        for t in T.thread_binding(2, "threadIdx.x"):
            for j in range(4):
                with T.block("S"):
                    v = T.axis.spatial(8, t * 4 + j)
                    T.block_attr({"tir.manifest_shared_memory_local_stage": 1})
                    S[v] = A[v]
        for t in T.thread_binding(2, "threadIdx.x"):
            for j in range(4):
                with T.block("B"):
                    v = T.axis.spatial(8, t * 4 + j)
                    B[v] = S[7 - v]

    A = floats(8)
    mod = check_every_step(before, [A, np.zeros_like(A)])
    np.testing.assert_array_equal(run(mod, A, np.zeros_like(A))[1], A[::-1])


def test_auto_copy_is_shared_out():
    @T.prim_func
    def before(A: T.Buffer((3, 5), "float32"), B: T.Buffer((3, 5), "float32")):
        S = T.alloc_buffer((3, 5), scope="shared")
        for t in T.thread_binding(4, "threadIdx.x"):
            with T.block("copy"):
                T.reads(A[0:3, 0:5])
                T.writes(S[0:3, 0:5])
                T.block_attr({"auto_copy": 1, "vector_bytes": 16})
                for i, j in T.grid(3, 5):
                    S[i, j] = A[i, j]
            for i, j in T.grid(3, 5):
                if t == 0:
                    B[i, j] = S[2 - i, 4 - j]

    A = floats(3, 5)
    mod = tt.LowerAutoCopy()(tvm.IRModule({"main": before}))
    assert "copy * 4 + t" in mod.script() and "vectorized" not in mod.script(), (
        "rows of 5: no vectors"
    )
    got = run(tt.UnifyThreadBinding()(mod), A, np.zeros_like(A), threads="lockstep")[1]
    np.testing.assert_array_equal(got, A[::-1, ::-1])


@pytest.mark.parametrize("iterators", [True, False])
def test_auto_copy_errors(iterators):
    @T.prim_func
    def without(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                T.block_attr({"auto_copy": 1})
                A[i] = A[i] + T.float32(1)

    @T.prim_func
    def with_iterators(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                v = T.axis.spatial(4, i)
                T.block_attr({"auto_copy": 1})
                A[v] = A[v] + T.float32(1)

    before = with_iterators if iterators else without
    message = "run ConvertBlocksToOpaque first" if iterators else "copies from other buffers"
    with pytest.raises(ValueError, match=message):
        tt.LowerAutoCopy()(tvm.IRModule({"main": before}))


@pytest.mark.parametrize("rows, columns", [(8, 64), (3, 5)])
def test_default_gpu_schedule(rows, columns):
    @T.prim_func
    def before(
        A: T.Buffer((rows, columns), "float32"),
        sums: T.Buffer((rows,), "float32"),
        total: T.Buffer((1,), "float32"),
    ):
        for k, i in T.grid(columns, rows):
            with T.block("sums"):
                vk, vi = T.axis.remap("RS", [k, i])
                with T.init():
                    sums[vi] = T.float32(0)
                sums[vi] = sums[vi] + A[vi, vk]
        for k in range(rows):
            with T.block("total"):
                vk = T.axis.reduce(rows, k)
                with T.init():
                    total[0] = T.float32(0)
                total[0] = total[0] + sums[vk]

    target = tvm.target.Target({"kind": "cuda", "max_threads_per_block": 4, "thread_warp_size": 4})
    mod = tt.BindTarget(target)(tvm.IRModule({"main": before}))
    after = tt.DefaultGPUSchedule()(mod)
    assert after.script().count("threadIdx.x") == after.script().count("blockIdx.x") == 2
    tvm.ir.assert_structural_equal(tt.DefaultGPUSchedule()(after), after)
    inputs = [floats(rows, columns), np.zeros(rows, "float32"), np.zeros(1, "float32")]
    for got, want in zip(run(after, *inputs), run(before, *inputs), strict=True):
        np.testing.assert_array_equal(got, want)
    on_cpu = tt.BindTarget(tvm.target.Target("c"))(tvm.IRModule({"main": before}))
    tvm.ir.assert_structural_equal(tt.DefaultGPUSchedule()(on_cpu), on_cpu)


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
