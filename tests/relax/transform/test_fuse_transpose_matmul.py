# SPDX-License-Identifier: Apache-2.0
"""A product with a transposed matrix as one kernel."""

import numpy as np
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

from tests.relax.transform.products import operators, run


def test_fuse_transpose_matmul():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((2, 4, 8), "float32"),
            w: R.Tensor((6, 8), "float32"),
            v: R.Tensor((6, 6, 6), "float32"),
        ):
            with R.dataflow():
                t = R.permute_dims(w)
                y = R.matmul(x, t)
                u = R.permute_dims(v, axes=[2, 1, 0])
                z = R.matmul(u, v)
                R.output(y, z)
            return (y, z)

    after = transform.FuseTransposeMatmul()(Before)
    assert operators(after) == ["call_tir", "permute_dims", "matmul"]
    call = after["main"].body.blocks[0].bindings[0].value
    assert call.args[0].name_hint == "NT_matmul"
    assert [a.name_hint for a in call.args[1].fields] == ["x", "w"]
    for a, b in zip(run(after), run(Before), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
