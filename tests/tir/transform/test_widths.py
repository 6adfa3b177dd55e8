# SPDX-License-Identifier: Apache-2.0
"""Integers in fewer bits: indices, block iterators, and functions that depend on the width."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.testing.features import host_target
from tvm.tir import transform as tt


def apply(one, func):
    return one(tvm.IRModule({"main": func}))["main"]


@pytest.mark.parametrize("start", [1, -3])
@pytest.mark.parametrize("op", [tir.clz, tir.popcount])
def test_functions_of_all_bits_keep_their_value(op, start):
    B = tir.decl_buffer((8,), "int32", name="B")
    i = tir.Var("i", "int64")
    value = tir.Cast("int32", op(i + tir.const(start, "int64")))
    body = tir.For(i, tir.const(0, "int64"), tir.const(8, "int64"), tir.ForKind.SERIAL,
                   tir.BufferStore(B, value, [i]))  # fmt: skip
    func = tir.PrimFunc([B], body)
    expected, got = np.zeros(8, "int32"), np.zeros(8, "int32")
    tir.interpret(func)(expected)
    tir.interpret(apply(tt.ForceNarrowIndexToInt32(), func))(got)
    np.testing.assert_array_equal(got, expected)
    if op is tir.clz and start == 1:
        np.testing.assert_array_equal(expected, 63 - np.log2(np.arange(1, 9)).astype("int32"))


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


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nextafter(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(getattr(ml_dtypes, dtype) if dtype == "bfloat16" else dtype)
    some = [0.0, -0.0, 1.0, -1.0, 1e-7, 65504.0, -3.5, np.inf, -np.inf, np.nan]
    x, y = (np.array(v, kind) for v in zip(*[(a, b) for a in some for b in some], strict=True))
    n = len(x)

    @T.prim_func
    def func(X: T.Buffer((n,), dtype), Y: T.Buffer((n,), dtype), Z: T.Buffer((n,), dtype)):
        for i in range(n):
            Z[i] = T.nextafter(X[i], Y[i])

    args = [tvm.runtime.tensor(a) for a in (x, y, np.zeros(n, kind))]
    tvm.compile(func, target=host_target())(*args)
    got, expected = args[2].numpy().astype("float64"), np.nextafter(x, y).astype("float64")
    np.testing.assert_array_equal(got, expected)
    if dtype != "float16":  # where NumPy gives the first of two equal zeros, not the second
        signs = np.signbit(got), np.signbit(expected)
        np.testing.assert_array_equal(*(s[expected == 0] for s in signs))
