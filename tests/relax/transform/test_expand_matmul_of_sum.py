# SPDX-License-Identifier: Apache-2.0
"""A product with a sum as the sum of two products."""

import numpy as np
import tvm
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

from tests.relax.transform.products import check, operators, run


def test_expand_matmul_of_sum():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((4, 8), "float32"),
            a: R.Tensor((8, 3), "float32"),
            b: R.Tensor((8, 3), "float32"),
        ):
            with R.dataflow():
                s = R.add(a, b)
                y = R.matmul(x, s)
                R.output(y)
            return y

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((4, 8), "float32"),
            a: R.Tensor((8, 3), "float32"),
            b: R.Tensor((8, 3), "float32"),
        ):
            with R.dataflow():
                lv = R.matmul(x, a)
                lv1 = R.matmul(x, b)
                y = R.add(lv, lv1)
                R.output(y)
            return y

    check(transform.ExpandMatmulOfSum(), Before, Expected)
    # Sums of weights are computed before the program runs.
    weights = tvm.IRModule({"main": Before["main"].with_attr("num_input", 1)})
    check(transform.ExpandMatmulOfSum(), weights)


def test_expand_matmul_of_transposed_sum_but_not_of_a_broadcast():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((4, 8), "float32"),
            a: R.Tensor((3, 8), "float32"),
            b: R.Tensor((3, 8), "float32"),
            c: R.Tensor((8,), "float32"),
        ):
            with R.dataflow():
                y = R.matmul(x, R.permute_dims(R.add(a, b)))
                z = R.matmul(x, R.permute_dims(R.add(a, c)))
                R.output(y, z)
            return (y, z)

    after = transform.ExpandMatmulOfSum()(Before)
    expected = "permute_dims matmul permute_dims matmul add add permute_dims matmul".split()
    assert sorted(operators(after)) == sorted(expected)
    for a, b in zip(run(after), run(Before), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
