# SPDX-License-Identifier: Apache-2.0
"""An intrinsic of one's own, and how it becomes arithmetic."""

import numpy as np
import tvm
from tvm import te, tir
from tvm.ir import register_intrin_lowering, register_op_attr

register_op_attr("tir.example_cube", "TCallEffectKind", tir.CallEffectKind.Pure)


@register_intrin_lowering("tir.example_cube", target="default")
def _(op):
    return op.args[0] * op.args[0] * op.args[0]


def cube(x):
    """x * x * x"""
    return tir.call_intrin(x.dtype, "tir.example_cube", x)


def main():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: cube(A[i]), name="B")
    a, b = np.random.rand(64).astype("float32"), tvm.runtime.empty((64,), "float32")
    tvm.compile(te.create_prim_func([A, B]), target="llvm")(tvm.runtime.tensor(a), b)
    np.testing.assert_allclose(b.numpy(), a**3, rtol=1e-6)


if __name__ == "__main__":
    main()
