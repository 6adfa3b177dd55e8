# SPDX-License-Identifier: Apache-2.0
"""Moves what runs on a device into functions of their own."""

import numpy as np
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.fuzz.steps import run
from tests.tir.programs import floats


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


def test_a_kernel_declares_each_buffer_once():
    @I.ir_module
    class Before:
        @T.prim_func
        def main(A: T.Buffer((8,), "float32")):
            T.func_attr({"target": T.target("opencl", host="c")})
            with T.launch_thread("threadIdx.x", 8) as t:
                A[t] = A[t] + A[7 - t]

    mod = tt.SplitHostDevice()(tt.AnnotateDeviceRegions()(Before))
    assert mod["main_kernel"].script().count("T.decl_buffer") == 1
