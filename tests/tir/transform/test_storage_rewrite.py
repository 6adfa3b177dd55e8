# SPDX-License-Identifier: Apache-2.0
"""Lets allocations whose lives do not overlap share memory."""

import numpy as np
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import interpret
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, seq, store


def allocations(func):
    found = []
    tir.stmt_functor.post_order_visit(
        func.body, lambda n: found.append(n) if isinstance(n, tir.Allocate) else None
    )
    return found


def same_results(before, after, *shapes):
    results = []
    for one in (before, after):
        rng = np.random.default_rng(0)
        arrays = [rng.normal(size=s).astype("float32") for s in shapes]
        interpret(one)(*arrays)
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


def _allocate(buf, body):
    return tir.Allocate(buf.data, buf.dtype, buf.shape, tir.const(True), tir.DeclBuffer(buf, body))


def _copy(src, dst, n=1024):
    return loop(n, lambda i: store(dst, i, src[i] + 1.0))


def test_storage_is_shared_when_lives_do_not_overlap():
    A, D = buffer((1024,), name="A"), buffer((1024,), name="D")
    temps = [buffer((1024,), name=n) for n in ("T0", "T1", "T2", "T3")]
    chain = [A, *temps, D]
    body = seq(*(_copy(a, b) for a, b in zip(chain, chain[1:], strict=False)))
    for t in reversed(temps):
        body = _allocate(t, body)
    before = func([A, D], body)
    result = apply(tt.StorageRewrite(), before)
    assert len(allocations(result)) == 1, "each is computed from the one before, in place"
    a = np.arange(1024, dtype="float32")
    d = np.zeros_like(a)
    tir.interpret(result)(a, d)
    np.testing.assert_array_equal(d, a + 5)


def test_storage_used_again_in_the_next_iteration_is_kept():
    """T lives through the whole loop: U cannot have its memory."""
    A, T, U = (buffer((1024,), name=n) for n in "ATU")
    body = loop(2, lambda k: seq(_copy(A, U), _copy(U, A), _copy(T, A), _copy(A, T)), "k")
    before = func([A], _allocate(T, _allocate(U, seq(_copy(A, T), body))))
    check(tt.StorageRewrite(), before, before)


def test_exposed_pointer_is_not_shared():
    A, T, U = (buffer((1024,), name=n) for n in "ATU")
    p = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("float32")))
    body = tir.LetStmt(p, T.data, seq(_copy(A, T), _copy(T, A), _copy(A, U), _copy(U, A)))
    before = func([A], _allocate(T, _allocate(U, body)))
    check(tt.StorageRewrite(), before, before)
