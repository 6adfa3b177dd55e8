# SPDX-License-Identifier: Apache-2.0
"""Reshapes of reshapes, and reshapes to the shape that is there."""

from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

from .passes import check

REMOVE = transform.RemoveRedundantReshape()


def test_reshapes():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("n", 6), "float32")):
            n = T.int64()
            with R.dataflow():
                a = R.reshape(x, R.shape([n, 2, 3]))
                b = R.reshape(a, R.shape([n * 6]))
                c = R.reshape(b, R.shape([n, 6]))
                d = R.reshape(x, R.shape([n, 3 + 3]))
                e = R.add(c, d)
                f = R.reshape(e, R.shape([6, n]))
                R.output(b, f)
            return (b, f)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor(("n", 6), "float32")):
            n = T.int64()
            with R.dataflow():
                b = R.reshape(x, R.shape([n * 6]))
                c = x
                d = x
                e = R.add(c, d)
                f = R.reshape(e, R.shape([6, n]))
                R.output(b, f)
            return (b, f)

    check(REMOVE, Before, Expected)
