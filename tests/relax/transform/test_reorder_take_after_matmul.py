# SPDX-License-Identifier: Apache-2.0
"""Columns taken of a product instead of a matrix before it."""

from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

from tests.relax.transform.products import check


def test_reorder_take_after_matmul():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((2, 4), "float32"),
            w: R.Tensor((4, 3), "float32"),
            i: R.Tensor((5,), "int64"),
        ):
            with R.dataflow():
                a = R.take(w, i, axis=1)
                b = R.matmul(x, a)
                c = R.take(w, i, axis=0)
                d = R.matmul(b, c)
                R.output(d)
            return d

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((2, 4), "float32"),
            w: R.Tensor((4, 3), "float32"),
            i: R.Tensor((5,), "int64"),
        ):
            with R.dataflow():
                lv = R.matmul(x, w)
                b = R.take(lv, i, axis=1)
                c = R.take(w, i, axis=0)
                d = R.matmul(b, c)
                R.output(d)
            return d

    check(transform.ReorderTakeAfterMatmul(), Before, Expected)
