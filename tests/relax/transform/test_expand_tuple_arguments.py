# SPDX-License-Identifier: Apache-2.0
"""Tuples among the parameters of private functions as parameters of their own."""

from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

from .passes import check

EXPAND = transform.ExpandTupleArguments()


def test_nested_tuples_and_known_tuples():
    @I.ir_module
    class Before:
        @R.function(private=True)
        def f(
            t: R.Tuple(
                R.Tensor((2,), "float32"), R.Tuple(R.Tensor((2,), "float32"), R.Prim("int64"))
            ),
            s: R.Tensor((2,), "float32"),
        ) -> R.Tensor((2,), "float32"):
            a = t[0]
            p = t[1]
            b = p[0]
            c = R.add(a, b)
            d = R.add(c, s)
            return d

        @R.function
        def main(
            x: R.Tensor((2,), "float32"), p: R.Tuple(R.Tensor((2,), "float32"), R.Prim("int64"))
        ) -> R.Tensor((2,), "float32"):
            cls = Before
            y = cls.f((x, p), x)
            return y

    @I.ir_module
    class Expected:
        @R.function(private=True)
        def f(
            t_0: R.Tensor((2,), "float32"),
            t_1_0: R.Tensor((2,), "float32"),
            t_1_1: R.Prim("int64"),
            s: R.Tensor((2,), "float32"),
        ) -> R.Tensor((2,), "float32"):
            a = t_0
            p = (t_1_0, t_1_1)
            b = p[0]
            c = R.add(a, b)
            d = R.add(c, s)
            return d

        @R.function
        def main(
            x: R.Tensor((2,), "float32"), p: R.Tuple(R.Tensor((2,), "float32"), R.Prim("int64"))
        ) -> R.Tensor((2,), "float32"):
            cls = Expected
            q = p[0]
            r = p[1]
            y = cls.f(x, q, r, x)
            return y

    check(EXPAND, Before, Expected)


def test_public_functions_and_functions_as_values_stay():
    @I.ir_module
    class Module:
        @R.function
        def public(t: R.Tuple(R.Tensor((2,), "float32"))) -> R.Tensor((2,), "float32"):
            a = t[0]
            return a

        @R.function(private=True)
        def value(t: R.Tuple(R.Tensor((2,), "float32"))) -> R.Tensor((2,), "float32"):
            a = t[0]
            return a

        @R.function
        def main(t: R.Tuple(R.Tensor((2,), "float32"))) -> R.Tensor((2,), "float32"):
            cls = Module
            f = cls.value
            a = f(t)
            b = cls.public((a,))
            return b

    assert EXPAND(Module).same_as(Module)
