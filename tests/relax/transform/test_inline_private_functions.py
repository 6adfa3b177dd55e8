# SPDX-License-Identifier: Apache-2.0
"""Calls of private functions replaced by their bodies."""

from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

from .passes import check

INLINE = transform.InlinePrivateFunctions()


def test_calls_in_calls_with_symbolic_shapes():
    @I.ir_module
    class Before:
        @R.function(private=True)
        def inner(a: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
            b = R.add(a, a)
            return b

        @R.function(private=True)
        def outer(a: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
            cls = Before
            b = cls.inner(a)
            c = R.exp(b)
            return c

        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            cls = Before
            y = cls.outer(x)
            z = cls.inner(y)
            return z

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            b = R.add(x, x)
            b1 = b
            c = R.exp(b1)
            y = c
            b2 = R.add(y, y)
            z = b2
            return z

    check(INLINE, Before, Expected)


def test_dataflow_blocks_take_what_they_may_hold():
    @I.ir_module
    class Before:
        @R.function(private=True)
        def plain(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            with R.dataflow():
                t = R.add(a, a)
                b = R.exp(t)
                R.output(b)
            return b

        @R.function(private=True)
        def choice(a: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(
            (2,), "float32"
        ):
            if c:
                r = R.add(a, a)
            else:
                r = R.exp(a)
            return r

        @R.function(private=True)
        def indirect(a: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(
            (2,), "float32"
        ):
            cls = Before
            r = cls.choice(a, c)
            return r

        @R.function
        def main(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(
            (2,), "float32"
        ):
            cls = Before
            with R.dataflow():
                y = cls.plain(x)
                z = cls.indirect(y, c)
                R.output(z)
            return z

    @I.ir_module
    class Expected:
        @R.function(private=True)
        def indirect(a: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(
            (2,), "float32"
        ):
            if c:
                r = R.add(a, a)
            else:
                r = R.exp(a)
            r1 = r
            return r1

        @R.function
        def main(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(
            (2,), "float32"
        ):
            cls = Expected
            with R.dataflow():
                t = R.add(x, x)
                b = R.exp(t)
                y = b
                z = cls.indirect(y, c)
                R.output(b, z)
            return z

    check(INLINE, Before, Expected)


def test_recursion_public_functions_and_values_stay():
    @I.ir_module
    class Module:
        @R.function(private=True)
        def again(a: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(
            (2,), "float32"
        ):
            cls = Module
            if c:
                r = cls.again(a, c)
            else:
                r = R.exp(a)
            return r

        @R.function
        def public(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            b = R.exp(a)
            return b

        @R.function(private=True)
        def value(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            b = R.add(a, a)
            return b

        @R.function
        def main(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(
            (2,), "float32"
        ):
            cls = Module
            f = cls.value
            y = cls.again(x, c)
            z = cls.public(y)
            w = f(z)
            return w

    assert INLINE(Module).same_as(Module)
