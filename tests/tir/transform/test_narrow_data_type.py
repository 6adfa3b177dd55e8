# SPDX-License-Identifier: Apache-2.0
"""Computes indices in fewer bits where their bounds allow it."""

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, store


def test_narrow_data_type():
    A = buffer((512,))
    before = func(
        [A],
        loop(
            tir.const(128, "int64"),
            lambda i: store(A, i * tir.const(4, "int64"), 1.0),
            dtype="int64",
        ),
    )
    check(tt.NarrowDataType(32), before, func([A], loop(128, lambda i: store(A, i * 4, 1.0))))


def test_narrow_data_type_keeps_what_does_not_fit():
    A = buffer((tir.const(1 << 40, "int64"),))
    step = tir.const(1 << 30, "int64")
    before = func(
        [A], loop(tir.const(1 << 10, "int64"), lambda i: store(A, i * step, 1.0), dtype="int64")
    )
    check(tt.NarrowDataType(32), before, before)


def test_narrow_data_type_casts_where_values_are_wide():
    """int64 data computed from a narrowed variable is the same int64."""
    A = buffer((128,), "int64")
    before = func(
        [A],
        loop(
            tir.const(128, "int64"),
            lambda i: store(A, i, i * tir.const(1 << 40, "int64")),
            dtype="int64",
        ),
    )
    result = apply(tt.NarrowDataType(32), before)
    assert result.body.loop_var.dtype == "int32"
    assert result.body.body.value.dtype == "int64"


def test_narrow_data_type_rejects_odd_widths():
    A = buffer((8,))
    with pytest.raises(ValueError, match="expected target_bits 8, 16 or 32, got 24"):
        apply(tt.NarrowDataType(24), func([A], store(A, 0, 1.0)))


def test_predicates_use_the_narrow_variable():
    A = buffer((8,), "uint8")
    zeros = tir.Broadcast(tir.const(0, "uint8"), 3)

    def body(dtype):
        def masked(o):
            mask = tir.LT(
                tir.Ramp(o, tir.const(1, dtype), 3), tir.Broadcast(tir.const(1, dtype), 3)
            )
            place = tir.Ramp(tir.const(0, dtype), tir.const(1, dtype), 3)
            return tir.BufferStore(A, zeros, [place], mask)

        o = tir.Var("o", dtype)
        return tir.For(o, tir.const(0, dtype), tir.const(3, dtype), tir.ForKind.SERIAL, masked(o))

    check(tt.NarrowDataType(16), func([A], body("int32")), func([A], body("int16")))


def test_iterators_of_blocks_narrow_with_their_loops():
    @T.prim_func
    def before(A: T.Buffer((T.int64(60),), "float32"), B: T.Buffer((T.int64(60),), "float32")):
        for p, q in T.grid(T.int64(12), T.int64(5)):
            with T.block("B"):
                v = T.axis.spatial(T.int64(60), p * T.int64(5) + q)
                T.reads(A[v])
                T.writes(B[v])
                B[v] = A[v] + T.float32(1)

    @T.prim_func
    def expected(A: T.Buffer((T.int64(60),), "float32"), B: T.Buffer((T.int64(60),), "float32")):
        for p, q in T.grid(12, 5):
            with T.block("B"):
                v = T.axis.spatial(60, p * 5 + q)
                T.reads(A[v])
                T.writes(B[v])
                B[v] = A[v] + T.float32(1)

    after = apply(tt.NarrowDataType(32), before)
    tvm.ir.assert_structural_equal(after, expected.with_attr("global_symbol", "before"))


def test_iterators_that_do_not_fit_stay():
    @T.prim_func
    def before(B: T.Buffer((T.int64(1 << 40),), "int8")):
        for p, q in T.grid(T.int64(12), T.int64(5)):
            with T.block("B"):
                v = T.axis.spatial(T.int64(1 << 40), p * T.int64(1 << 33) + q)
                B[v] = T.int8(1)

    after = apply(tt.NarrowDataType(32), before)
    assert tir.analysis.verify_well_formed(after)
    found = []
    tir.stmt_functor.post_order_visit(
        after.body, lambda n: found.append(n) if isinstance(n, tir.Block) else None
    )
    assert [str(iv.var.dtype) for iv in found[0].iter_vars] == ["int64"]


def test_indices_of_scalable_vectors_stay():
    """How many lanes they have is not known."""
    A = buffer((tir.const(1 << 12, "int64"),))
    lanes = tir.vscale() * 4

    def body(i):
        index = tir.Ramp(i, tir.const(1, "int64"), lanes)
        return tir.BufferStore(A, tir.Broadcast(tir.const(1.0, "float32"), lanes), [index])

    before = func([A], loop(tir.const(8, "int64"), body, dtype="int64"))
    after = apply(tt.NarrowDataType(32), before)
    assert after.body.body.indices[0].dtype == "int64xvscalex4"
