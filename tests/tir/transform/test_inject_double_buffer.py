# SPDX-License-Identifier: Apache-2.0
"""Fills a buffer for the next iteration while this one uses it."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import tir
from tvm.script import tir as T
from tvm.tir import interpret
from tvm.tir import transform as tt

from tests.tir.programs import floats


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


def test_a_pointer_leads_to_the_half_of_its_iteration():
    """A function that gets the memory as such, not its elements."""

    @tvm.register_global_func("test.double_buffer.add", override=True)
    def add(tensor, value):
        np.from_dlpack(tensor)[...] += np.int32(value)
        return 0

    @T.prim_func
    def before(A: T.Buffer((40,), "int32"), C: T.Buffer((40,), "int32")):
        for i in range(10):
            B_data = T.allocate([4], "int32", "global")
            B = T.decl_buffer((4,), "int32", data=B_data)
            with T.attr(B_data, "double_buffer_scope", 1):
                for j in range(4):
                    B[j] = A[i * 4 + j]
            T.evaluate(
                T.tvm_call_packed(
                    "test.double_buffer.add",
                    T.tvm_stack_make_array(B_data, T.tvm_stack_make_shape(4), 0, 1, 0, 0),
                    i,
                )
            )
            for j in range(4):
                C[i * 4 + j] = B[j]

    A, C = np.arange(40, dtype="int32"), np.zeros(40, "int32")
    mod = tt.InjectDoubleBuffer()(tvm.IRModule({"main": before}))
    interpret(mod)(A, C)
    np.testing.assert_array_equal(C, A + np.arange(40) // 4)
    C[:] = 0
    tvm.compile(before, target=tvm.testing.host_target())(A, C)
    np.testing.assert_array_equal(C, A + np.arange(40) // 4)
