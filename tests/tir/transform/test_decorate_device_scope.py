# SPDX-License-Identifier: Apache-2.0
"""Says that a whole function runs on the device."""

from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply


def test_all_of_the_function_becomes_a_kernel():
    @T.prim_func
    def before(A: T.Buffer((2,), "float32")):
        T.func_attr({"target": T.target("opencl", host="c")})
        A[0] = T.float32(1)
        A[1] = T.float32(2)

    decorated = apply(tt.DecorateDeviceScope(), before)
    assert decorated.body.attr_key == "device_scope"
    # The passes behind it make a kernel of what is marked: nothing is left for the host.
    marked = apply(tt.AnnotateDeviceRegions(), decorated)
    assert (marked.body.attr_key, str(marked.body.node.kind)) == ("target", "opencl")
