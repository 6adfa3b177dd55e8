# SPDX-License-Identifier: Apache-2.0
"""Items of the results of private functions that no caller takes go."""

from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

from .passes import check

REMOVE = transform.RemoveUnusedOutputs()


def test_some_items():
    @I.ir_module
    class Before:
        @R.function(private=True)
        def f(a: R.Tensor((2,), "float32")):
            b = R.exp(a)
            c = R.sin(a)
            d = R.cos(a)
            return (b, c, d)

        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            cls = Before
            t = cls.f(x)
            u = cls.f(x)
            y = t[0]
            z = u[2]
            w = R.add(y, z)
            return w

    @I.ir_module
    class Expected:
        @R.function(private=True)
        def f(a: R.Tensor((2,), "float32")):
            b = R.exp(a)
            d = R.cos(a)
            return (b, d)

        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            cls = Expected
            t = cls.f(x)
            u = cls.f(x)
            y = t[0]
            z = u[1]
            w = R.add(y, z)
            return w

    check(REMOVE, Before, Expected)


def test_one_item_is_no_tuple():
    @I.ir_module
    class Before:
        @R.function(private=True)
        def f(a: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((3,), "float32"))):
            return a

        @R.function
        def main(
            x: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((3,), "float32")),
        ) -> R.Tensor((3,), "float32"):
            cls = Before
            t = cls.f(x)
            y = t[1]
            z = R.exp(y)
            return z

    @I.ir_module
    class Expected:
        @R.function(private=True)
        def f(
            a: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((3,), "float32")),
        ) -> R.Tensor((3,), "float32"):
            b = a[1]
            return b

        @R.function
        def main(
            x: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((3,), "float32")),
        ) -> R.Tensor((3,), "float32"):
            cls = Expected
            t = cls.f(x)
            y = t
            z = R.exp(y)
            return z

    check(REMOVE, Before, Expected)


def test_results_used_as_a_whole_stay():
    @I.ir_module
    class Module:
        @R.function(private=True)
        def f(a: R.Tensor((2,), "float32")):
            b = R.exp(a)
            return (a, b)

        @R.function
        def main(x: R.Tensor((2,), "float32")):
            cls = Module
            t = cls.f(x)
            y = t[0]
            return (y, t)

    assert REMOVE(Module).same_as(Module)
