# SPDX-License-Identifier: Apache-2.0
"""One transposition behind a concatenation instead of one for each part."""

from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

from tests.relax.transform.products import check


def test_reorder_permute_dims_after_concat():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3, 4), "float32"), y: R.Tensor((2, 3, 5), "float32")):
            with R.dataflow():
                a = R.permute_dims(x, axes=[2, 0, 1])
                b = R.permute_dims(y, axes=[2, 0, 1])
                c = R.concat((a, b), axis=0)
                R.output(c)
            return c

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3, 4), "float32"), y: R.Tensor((2, 3, 5), "float32")):
            with R.dataflow():
                lv = R.concat((x, y), axis=2)
                c = R.permute_dims(lv, axes=[2, 0, 1])
                R.output(c)
            return c

    check(transform.ReorderPermuteDimsAfterConcat(), Before, Expected)


def test_reorder_permute_dims_wants_one_order():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 2), "float32"), y: R.Tensor((2, 2), "float32")):
            with R.dataflow():
                a = R.permute_dims(x, axes=[1, 0])
                b = R.permute_dims(y, axes=[0, 1])
                c = R.concat((a, b), axis=0)
                d = R.concat((a, y), axis=0)
                R.output(c, d)
            return (c, d)

    check(transform.ReorderPermuteDimsAfterConcat(), Before)
