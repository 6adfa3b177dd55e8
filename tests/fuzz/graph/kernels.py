# SPDX-License-Identifier: Apache-2.0
"""PrimFuncs and packed functions that random graphs call."""

import numpy as np
import tvm_ffi
from tvm import te
from tvm.script import tir as T

PREFIX = "tests.fuzz.graph."


def _private(func):
    return func.without_attr("global_symbol").with_attr("tir.noalias", True)


def _dims(rank):
    return [te.var(f"d{i}", "int64") for i in range(rank)]


def combine(rank, dtype):
    """C = A * 2 + B"""
    dims = _dims(rank)
    a, b = (te.placeholder(dims, dtype, name) for name in "AB")
    c = te.compute(dims, lambda *i: a(*i) * te.const(2, dtype) + b(*i), "C")
    return _private(te.create_prim_func([a, b, c]))


def both(rank, dtype):
    """C = max(A, B), D = A - B"""
    dims = _dims(rank)
    a, b = (te.placeholder(dims, dtype, name) for name in "AB")
    c = te.compute(dims, lambda *i: te.max(a(*i), b(*i)), "C")
    d = te.compute(dims, lambda *i: a(*i) - b(*i), "D")
    return _private(te.create_prim_func([a, b, c, d]))


def shifted(rank, dtype):
    """C = A + k, where k is no dimension."""
    dims, k = _dims(rank), te.var("k", "int64")
    a = te.placeholder(dims, dtype, "A")
    c = te.compute(dims, lambda *i: a(*i) + k.astype(dtype), "C")
    return _private(te.create_prim_func([a, c, k]))


@T.prim_func(private=True)
def doubled(a: T.handle):
    """A = A * 2, in place."""
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = A[vi] * T.float32(2)


@tvm_ffi.register_global_func(PREFIX + "reverse", override=True)
def _reverse(x, out):
    out.copyfrom(np.flip(x.numpy()).copy())


@tvm_ffi.register_global_func(PREFIX + "choose", override=True)
def _choose(which, dtype, *values):
    """One of the values, by the first letter of a text and the bits of a type."""
    return values[(len(str(which)) + np.dtype(str(dtype)).itemsize) % len(values)]
