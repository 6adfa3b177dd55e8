# SPDX-License-Identifier: Apache-2.0
"""Marks what runs on the device."""

import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import check


def test_each_kernel_is_marked_once():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.func_attr({"target": T.target("opencl", host="c")})
        with T.launch_thread("blockIdx.x", 2) as b:
            t = T.launch_thread("threadIdx.x", 4)
            A[b * 4 + t] = T.float32(1)
        B[0] = T.float32(2)
        with T.launch_thread("threadIdx.x", 8) as t:
            B[t] = A[t]

    @T.prim_func(private=True)
    def expected(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.func_attr({"target": T.target("opencl", host="c")})
        with T.attr(T.target("opencl"), "target", 0):
            b = T.launch_thread("blockIdx.x", 2)
            t = T.launch_thread("threadIdx.x", 4)
            A[b * 4 + t] = T.float32(1)
        B[0] = T.float32(2)
        with T.attr(T.target("opencl"), "target", 0):
            t = T.launch_thread("threadIdx.x", 8)
            B[t] = A[t]

    check(tt.AnnotateDeviceRegions(), before, expected)
    # What is marked stays as it is.
    check(tt.AnnotateDeviceRegions(), expected, expected)


def test_without_a_host_nothing_is_marked():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        A[t] = T.float32(1)

    check(tt.AnnotateDeviceRegions(), before, before)
    on_device = before.with_attr("target", tvm.target.Target("opencl"))
    check(tt.AnnotateDeviceRegions(), on_device, on_device)
