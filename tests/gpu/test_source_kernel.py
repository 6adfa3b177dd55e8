# SPDX-License-Identifier: Apache-2.0
"""Kernels that a script brings as CUDA text."""

import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

SOURCE = """
__global__ void add_scaled(const float* x, const float* y, float* out, float by, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = x[i] + by * y[i];
}
"""


def test_a_function_of_a_graph_launches_it():
    with tvm.target.Target("cuda"):

        @I.ir_module
        class Module:
            @T.prim_func
            def add(
                x: T.Buffer((1000,), "float32"),
                y: T.Buffer((1000,), "float32"),
                out: T.Buffer((1000,), "float32"),
            ):
                T.call_kernel(SOURCE, ((4,), (256,)), x.data, y.data, out.data, T.float32(3), 1000)

            @R.function
            def main(x: R.Tensor((1000,), "float32"), y: R.Tensor((1000,), "float32")):
                cls = Module
                with R.dataflow():
                    out = R.call_tir(cls.add, (x, y), out_sinfo=R.Tensor((1000,), "float32"))
                    R.output(out)
                return out

    vm = relax.VirtualMachine(tvm.compile(Module, "cuda"), tvm.cuda(0))
    x, y = (np.random.rand(1000).astype("float32") for _ in range(2))
    got = vm["main"](*(tvm.runtime.tensor(a, tvm.cuda(0)) for a in (x, y)))
    np.testing.assert_allclose(got.numpy(), x + 3 * y, rtol=1e-6)
