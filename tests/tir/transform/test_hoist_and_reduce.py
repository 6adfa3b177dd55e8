# SPDX-License-Identifier: Apache-2.0
"""Hoisting, removal of stores, assumptions: expected programs, and runs before and after."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import interpret
from tvm.tir import transform as tt
from tvm.tir.transform import HoistedConditionals as C
from tvm.tir.transform import HoistedLetBindings as L


def apply(step, func, **config):
    with tvm.transform.PassContext(config=config):
        return step(tvm.IRModule({"main": func}))["main"]


def hoist(func, conditionals, lets=L.Never):
    options = {"hoisted_conditionals": conditionals.value, "hoisted_let_bindings": lets.value}
    return apply(tt.HoistExpression(), func, **{"tir.HoistExpression": options})


@T.prim_func
def mixed(A: T.Buffer((8,), "float32"), n: T.int32, m: T.int32):
    for i in range(8):
        if i < 4 and n > 3:
            A[i] = T.if_then_else(m > 2, T.float32(1), T.float32(2))


def run(func, n, m):
    A = np.zeros(8, "float32")
    interpret(func)(A, n, m)
    return A


@pytest.mark.parametrize("flags", [C.Never, C.IfElseExpr, C.BooleanExpression, C.All])
def test_hoisting_keeps_results(flags):
    after = hoist(mixed, flags)
    assert tir.analysis.verify_ssa(after)
    for n in (3, 4):
        for m in (2, 3):
            np.testing.assert_array_equal(run(after, n, m), run(mixed, n, m))


def test_hoist_boolean_expression():
    @T.prim_func
    def expected(A: T.Buffer((8,), "float32"), n: T.int32, m: T.int32):
        if n > 3:
            for i in range(8):
                if i < 4:
                    A[i] = T.if_then_else(m > 2, T.float32(1), T.float32(2))

    tvm.ir.assert_structural_equal(
        hoist(mixed, C.BooleanExpression), expected.with_attr("global_symbol", "mixed")
    )


def test_hoist_lets():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32"), n: T.int32):
        for i in range(8):
            m = n * 2
            if m > 3:
                A[i] = T.float32(1)

    @T.prim_func(private=True)
    def expected(A: T.Buffer((8,), "float32"), n: T.int32):
        m = n * 2
        if m > 3:
            for i in range(8):
                A[i] = T.float32(1)

    for lets in (L.RequiredByConditional, L.LetStmt):
        tvm.ir.assert_structural_equal(hoist(before, C.IfElseStmt, lets), expected)
    tvm.ir.assert_structural_equal(hoist(before, C.IfElseStmt), before)


def test_conditions_on_threads_move_on_demand():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        for i in range(8):
            if t < 4:
                A[i] = T.float32(1)

    @T.prim_func(private=True)
    def expected(A: T.Buffer((8,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        if t < 4:
            for i in range(8):
                A[i] = T.float32(1)

    tvm.ir.assert_structural_equal(apply(tt.HoistIfThenElse(), before), before)
    options = {"tir.HoistIfThenElse": {"support_block_scope_hosting": True}}
    tvm.ir.assert_structural_equal(apply(tt.HoistIfThenElse(), before, **options), expected)


# ---- stores that nobody sees --------------------------------------------------------------------
DATAFLOW = {"tir.RemoveNoOp": {"use_dataflow_analysis": True}}


def test_store_that_is_read_stays():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)
        B[0] = A[3]
        for i in range(8):
            A[i] = T.float32(2)

    tvm.ir.assert_structural_equal(apply(tt.RemoveNoOp(), before, **DATAFLOW), before)


def test_store_of_other_elements_stays():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)
        for i in range(7):
            A[i] = T.float32(2)

    tvm.ir.assert_structural_equal(apply(tt.RemoveNoOp(), before, **DATAFLOW), before)


def test_store_that_the_next_one_reads_stays():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)
        for i in range(8):
            A[i] = A[i] + T.float32(2)

    tvm.ir.assert_structural_equal(apply(tt.RemoveNoOp(), before, **DATAFLOW), before)


# ---- assumptions --------------------------------------------------------------------------------
def test_assumption_must_fit_the_value():
    @T.prim_func(private=True)
    def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            T.evaluate(T.assume(i < 14 or A[i] == T.float32(0)))
        for i in range(16):
            B[i] = T.if_then_else(i < 14, A[i] + T.float32(1), T.float32(0))

    tvm.ir.assert_structural_equal(apply(tt.UseAssumeToReduceBranches(), before), before)


def test_assumption_ends_with_a_store():
    @T.prim_func(private=True)
    def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            T.evaluate(T.assume(i < 14 or A[i] == T.float32(0)))
        A[15] = T.float32(3)
        for i in range(16):
            B[i] = T.if_then_else(i < 14, A[i] * T.float32(2), T.float32(0))

    tvm.ir.assert_structural_equal(apply(tt.UseAssumeToReduceBranches(), before), before)


def test_overcompute_stays_inside_of_buffers():
    @T.prim_func(private=True)
    def before(A: T.Buffer((14,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            if i < 14:
                B[i] = A[i]
            else:
                B[i] = T.call_intrin("float32", "tir.undef")

    after = apply(tt.ReduceBranchingThroughOvercompute(), before)
    tvm.ir.assert_structural_equal(after, before)


# ---- storage ------------------------------------------------------------------------------------
def allocations(func):
    found = []
    tir.stmt_functor.post_order_visit(
        func.body, lambda n: found.append(n) if isinstance(n, tir.Allocate) else None
    )
    return found


def same_results(before, after, *shapes):
    results = []
    for func in (before, after):
        rng = np.random.default_rng(0)
        arrays = [rng.normal(size=s).astype("float32") for s in shapes]
        interpret(func)(*arrays)
        results.append(arrays)
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_storage_of_another_type_is_reused():
    @T.prim_func
    def before(A: T.Buffer((512,), "float32")):
        B = T.decl_buffer((512,), "float32")
        C = T.decl_buffer((256,), "float64")
        for i in range(512):
            B[i] = A[511 - i]
        for i in range(512):
            A[i] = B[i]
        for i in range(256):
            C[i] = T.float64(2) * T.Cast("float64", A[i])
        for i in range(256):
            A[i] = T.Cast("float32", C[255 - i])

    after = apply(tt.StorageRewrite(), before)
    assert len(allocations(after)) == 1
    same_results(before, after, 512)


def test_storage_in_place():
    @T.prim_func
    def before(A: T.Buffer((512,), "float32"), D: T.Buffer((512,), "float32")):
        B = T.decl_buffer((512,))
        C = T.decl_buffer((512,))
        for i in range(512):
            B[i] = A[511 - i]
        for i in range(512):
            C[i] = B[i] * T.float32(2)
        for i in range(512):
            D[i] = C[511 - i]

    after = apply(tt.StorageRewrite(), before)
    assert len(allocations(after)) == 1
    same_results(before, after, 512, 512)


def test_storage_not_in_place():
    """Elements are needed again: in another order, in another iteration, by another statement."""

    @T.prim_func
    def reversed_(A: T.Buffer((512,), "float32"), D: T.Buffer((512,), "float32")):
        B = T.decl_buffer((512,))
        C = T.decl_buffer((512,))
        for i in range(512):
            B[i] = A[i]
        for i in range(512):
            C[i] = B[511 - i]
        for i in range(512):
            D[i] = C[i]

    @T.prim_func
    def repeated(A: T.Buffer((512,), "float32"), D: T.Buffer((512,), "float32")):
        B = T.decl_buffer((512,))
        C = T.decl_buffer((512,))
        for i in range(512):
            B[i] = A[i]
        for _k in range(2):
            for i in range(512):
                C[i] = B[i] * T.float32(2)
        for i in range(512):
            D[i] = C[i]

    @T.prim_func
    def shared(A: T.Buffer((512,), "float32"), D: T.Buffer((512,), "float32")):
        B = T.decl_buffer((512,))
        C = T.decl_buffer((512,))
        for i in range(512):
            B[i] = A[i]
        for i in range(512):
            D[i] = B[T.max(i - 1, 0)]
            C[i] = B[i] * T.float32(2)
        for i in range(512):
            D[i] = D[i] + C[i]

    for before in (reversed_, repeated, shared):
        after = apply(tt.StorageRewrite(), before)
        assert len(allocations(after)) == 2
        same_results(before, after, 512, 512)


# ---- limits of a GPU ----------------------------------------------------------------------------
@T.prim_func
def kernel(A: T.Buffer((256,), "float32")):
    for b in T.thread_binding(2, "blockIdx.x"):
        for t in T.thread_binding(32, "threadIdx.x"):
            for v in T.vectorized(4):
                A[b * 128 + t * 4 + v] = T.float32(1)


@pytest.mark.parametrize(
    "limit, enough",
    [
        ("max_threads_per_block", 32),
        ("max_thread_x", 32),
        ("max_vector_bytes", 16),
        ("max_kernels", 1),
    ],
)
def test_verify_gpu_code(limit, enough):
    assert tir.analysis.verify_gpu_code(kernel, {limit: enough})
    assert not tir.analysis.verify_gpu_code(kernel, {limit: enough - 1})
    message = f"kernel: expected at most {enough - 1} .*{limit}.*got {enough}"
    with pytest.raises(RuntimeError, match=message):
        tt.VerifyGPUCode({limit: enough - 1})(tvm.IRModule({"kernel": kernel}))


def test_verify_gpu_code_knows_its_limits():
    with pytest.raises(ValueError, match="did you mean 'max_kernels'"):
        tir.analysis.verify_gpu_code(kernel, {"max_kernel": 1})
