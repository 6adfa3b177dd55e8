# SPDX-License-Identifier: Apache-2.0
"""unsafe_set_dtype: the type of the elements of a buffer."""

from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import two_stages


def test_values_are_converted_when_stored_and_loaded():
    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
        B = T.alloc_buffer((16, 8), "float64")
        for i, j in T.grid(16, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.Cast("float64", A[vi, vj] * 2.0)
        for i, j in T.grid(16, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.Cast("float32", B[vi, vj]) + 1.0

    apply(two_stages, lambda s: s.unsafe_set_dtype("B", 0, "float64"), expected)


def test_refusals():
    refused(two_stages, lambda s: s.unsafe_set_dtype("B", 0, "float32x4"), "a scalar type")
    refused(two_stages, lambda s: s.unsafe_set_dtype("C", 0, "float16"), "program allocates, got C")
