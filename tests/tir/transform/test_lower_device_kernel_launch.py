# SPDX-License-Identifier: Apache-2.0
"""Turns calls from the host into device functions into launches."""

import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt


def test_dynamic_launch():
    @T.prim_func
    def before(a: T.handle, n: T.int32):
        T.func_attr({"target": T.target("opencl", host="c"), "global_symbol": "main"})
        A = T.match_buffer(a, (n * 4,))
        b = T.launch_thread("blockIdx.x", n)
        t = T.launch_thread("threadIdx.x", 4)
        A[b * 4 + t] = T.float32(1)

    mod = tvm.IRModule({"main": before})
    for step in (tt.AnnotateDeviceRegions(), tt.SplitHostDevice(), tt.LowerDeviceKernelLaunch()):
        mod = step(mod)
    kernel = mod["main_kernel"]
    assert list(kernel.attrs["tir.kernel_launch_params"]) == ["blockIdx.x", "threadIdx.x"]
    assert int(kernel.attrs["calling_conv"]) == 2
    assert 'T.tvm_call_packed("main_kernel", A.data, n, n, 4)' in mod["main"].script()
