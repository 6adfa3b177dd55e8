# SPDX-License-Identifier: Apache-2.0
"""What scripts find in the results of passes, and the options they set."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.tir import transform


def run(make, func, **options):
    """The function after a pass, with options of its own."""
    pass_ = make()
    config = {pass_.info.name: options} if options else {}
    with tvm.transform.PassContext(config=config):
        return pass_(tvm.IRModule({"main": func}))["main"]


def same(func, expected):
    tvm.ir.assert_structural_equal(
        func.without_attr("global_symbol"), expected.without_attr("global_symbol")
    )


# ---- Simplify ------------------------------------------------------------------------------------
@T.prim_func
def stored(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
    A[0] = 5
    if A[0] == 5:
        B[0] = 1
    else:
        B[0] = A[0] + 2
    B[0] = B[0] + A[0]


def test_simplify_knows_what_was_stored():
    @T.prim_func
    def decided(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
        A[0] = 5
        B[0] = 1
        B[0] = B[0] + A[0]

    @T.prim_func
    def computed(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
        A[0] = 5
        B[0] = 1
        B[0] = 6

    same(run(transform.Simplify, stored), stored)
    same(run(transform.Simplify, stored, propagate_knowns_to_prove_conditional=True), decided)
    same(run(transform.Simplify, stored, propagate_knowns_to_simplify_expressions=True), computed)


def test_simplify_forgets_what_is_written_again():
    @T.prim_func
    def again(A: T.Buffer((2,), "int32"), B: T.Buffer((1,), "int32"), i: T.int32):
        A[0] = 5
        A[i] = 7
        B[0] = A[0]
        for j in range(2):
            B[0] = B[0] + A[0]
            A[0] = 3

    for option in ("prove_conditional", "simplify_expressions"):
        same(run(transform.Simplify, again, **{f"propagate_knowns_to_{option}": True}), again)


def test_simplify_knows_assumptions():
    @T.prim_func
    def before(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            T.evaluate(T.assume(i < 14 or A[i] == 0))
        for i in range(16):
            if 14 <= i:
                if A[i] == 0:
                    B[i] = 42

    @T.prim_func
    def after(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            T.evaluate(T.assume(i < 14 or A[i] == 0))
        for i in range(16):
            if 14 <= i:
                B[i] = 42

    same(run(transform.Simplify, before, propagate_knowns_to_prove_conditional=True), after)


def test_options_are_attributes():
    with tvm.transform.PassContext(
        config={"tir.Simplify": {"transitively_prove_inequalities": True}}
    ) as context:
        assert context.config["tir.Simplify"].transitively_prove_inequalities
        with pytest.raises(AttributeError, match="expected one of the options"):
            context.config["tir.Simplify"].something  # noqa: B018


# ---- LoopPartition -------------------------------------------------------------------------------
@T.prim_func
def chosen(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.serial(16, annotations={"pragma_loop_partition_hint": True}):
        B[i] = T.if_then_else(i < 13, A[i], T.float32(0))


def test_hinted_loops_are_partitioned_and_count_from_zero():
    @T.prim_func
    def after(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(13):
            B[i] = A[i]
        for i in range(3):
            B[i + 13] = T.if_then_else(i + 13 < 13, A[i + 13], T.float32(0))

    same(run(transform.LoopPartition, chosen), after)


def test_single_iterations_are_inlined():
    @T.prim_func
    def before(A: T.Buffer((16,), "float32"), n: T.int32):
        for i in T.serial(16, annotations={"pragma_loop_partition_hint": True}):
            if i < 15:
                A[i] = T.float32(1)

    after = run(transform.LoopPartition, before)
    assert "T.serial" not in str(after) and str(after).count("for i in") == 1
    kept = run(transform.LoopPartition, before, no_unroll_loop_with_extent_one=True)
    assert str(kept).count("for i") == 2


def test_hint_without_interval():
    @T.prim_func
    def before(A: T.Buffer((16,), "float32")):
        for i in T.serial(4, annotations={"pragma_loop_partition_hint": True}):
            A[i] = T.float32(1)

    assert "range(4)" in str(run(transform.LoopPartition, before))
    unrolled = run(
        transform.LoopPartition, before, unroll_loop_with_partition_hint_no_interval=True
    )
    assert "T.unroll(4)" in str(unrolled)


# ---- memory --------------------------------------------------------------------------------------
def test_memory_that_nobody_uses_is_gone():
    @T.prim_func
    def before(B: T.Buffer((1,), "float32")):
        A = T.decl_buffer((16,))
        C = T.allocate([16], "float32", "global")
        B[0] = T.float32(1)

    @T.prim_func
    def after(B: T.Buffer((1,), "float32")):
        B[0] = T.float32(1)

    same(run(transform.StorageRewrite, before), after)


def test_flatten_inside_of_blocks():
    @T.prim_func
    def before(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
        with T.block("x"):
            T.reads(A[0:4, 0:8])
            T.writes(B[1:3, 0:8])
            C = T.alloc_buffer((4, 8))
            for i, j in T.grid(2, 8):
                C[i, j] = A[i, j]
                B[i + 1, j] = C[i, j]

    after = run(transform.FlattenBuffer, before)
    block = tir.transform.Simplify()(tvm.IRModule({"main": after}))["main"].body
    while not isinstance(block, tir.BlockRealize):
        block = block.body
    block = block.block
    tvm.ir.assert_structural_equal(block.writes[0].region[0], tvm.ir.Range(8, 24))
    assert [int(e) for e in block.alloc_buffers[0].shape] == [32]


def test_flatten_refuses_views_of_blocks():
    @T.prim_func
    def before(A: T.Buffer((4, 8), "float32")):
        with T.block("x"):
            B = T.match_buffer(A[0:2, 0:8], (2, 8))
            B[0, 0] = T.float32(1)

    with pytest.raises(ValueError, match="expected blocks without match_buffer, got block x"):
        run(transform.FlattenBuffer, before)


def test_loops_that_never_run_are_gone():
    @T.prim_func
    def before(A: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(n - n):
            A[i] = 100

    @T.prim_func
    def after(A: T.Buffer((16,), "int32"), n: T.int32):
        T.evaluate(0)

    same(run(transform.RemoveNoOp, before), after)


# ---- targets -------------------------------------------------------------------------------------
def test_unpacked_functions_are_those_of_the_host():
    @I.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((1,), "float32")):
            T.func_attr({"target": T.target("cuda", host="llvm")})
            T.evaluate(0)

    target = transform.MakeUnpackedAPI()(Module)["main"].attrs["target"]
    assert target.kind.name == "llvm" and target.host is None


def test_default_gpu_schedule_of_unknown_extents():
    @T.prim_func
    def before(a: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,))
        C = T.match_buffer(c, (n,))
        for i in range(n):
            with T.block("C"):
                v = T.axis.spatial(n, i)
                C[v] = A[v] + T.float32(1)

    limits = {"max_threads_per_block": 2, "max_num_threads": 2, "thread_warp_size": 1}
    with tvm.target.Target({"kind": "cuda", **limits}):
        after = tir.transform.DefaultGPUSchedule()(tvm.IRModule({"main": before}))["main"]
    assert after.attrs["tir.is_scheduled"]
    sch = tir.Schedule(after)
    loops = [sch.get(loop) for loop in sch.get_loops("C")]
    tags = [loop.thread_binding and str(loop.thread_binding.thread_tag) for loop in loops]
    assert tags == ["blockIdx.x", "threadIdx.x", None]
    assert [int(loop.extent) for loop in loops[:2]] == [256, 2]
    x, expected = np.arange(9, dtype="float32"), np.arange(9, dtype="float32") + 1
    result = np.zeros(9, "float32")
    tir.interpret(after)(x, result)
    np.testing.assert_array_equal(result, expected)
