# SPDX-License-Identifier: Apache-2.0
"""Parameters of private functions that nobody uses go."""

from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

from .passes import check

REMOVE = transform.RemoveUnusedParameters()


def test_unused_parameters_go():
    @I.ir_module
    class Before:
        @R.function(private=True)
        def f(a: R.Tensor((2,), "float32"), b: R.Tensor((3,), "float32")) -> R.Tensor(
            (2,), "float32"
        ):
            c = R.exp(a)
            return c

        @R.function
        def main(x: R.Tensor((2,), "float32"), unused: R.Tensor((3,), "float32")) -> R.Tensor(
            (2,), "float32"
        ):
            cls = Before
            y = cls.f(x, unused)
            return y

    @I.ir_module
    class Expected:
        @R.function(private=True)
        def f(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            c = R.exp(a)
            return c

        @R.function
        def main(x: R.Tensor((2,), "float32"), unused: R.Tensor((3,), "float32")) -> R.Tensor(
            (2,), "float32"
        ):
            cls = Expected
            y = cls.f(x)
            return y

    check(REMOVE, Before, Expected)


def test_symbolic_variables_become_scalars():
    @I.ir_module
    class Before:
        @R.function(private=True)
        def f(a: R.Tensor(("n",), "float32"), b: R.Tensor(("n", "m"), "float32")) -> R.Tensor(
            ("m",), "float32"
        ):
            m = T.int64()
            c = R.zeros(R.shape([m]), "float32")
            return c

        @R.function
        def main(
            x: R.Tensor(("k",), "float32"), y: R.Tensor(("k", "k + 1"), "float32")
        ) -> R.Tensor(("k + 1",), "float32"):
            cls = Before
            z = cls.f(x, y)
            return z

    @I.ir_module
    class Expected:
        @R.function(private=True)
        def f(param_m: R.Prim(value="m")) -> R.Tensor(("m",), "float32"):
            m = T.int64()
            c = R.zeros(R.shape([m]), "float32")
            return c

        @R.function
        def main(
            x: R.Tensor(("k",), "float32"), y: R.Tensor(("k", "k + 1"), "float32")
        ) -> R.Tensor(("k + 1",), "float32"):
            k = T.int64()
            cls = Expected
            z = cls.f(R.prim_value(k + 1))
            return z

    check(REMOVE, Before, Expected)


def test_parameters_stay_when_a_caller_does_not_know_their_dims():
    @I.ir_module
    class Module:
        @R.function(private=True)
        def f(a: R.Tensor(("n",), "float32")) -> R.Shape(["n"]):
            n = T.int64()
            s = R.shape([n])
            return s

        @R.function(private=True)
        def g(a: R.Tensor(dtype="float32", ndim=1)) -> R.Shape(ndim=1):
            n = T.int64()
            cls = Module
            b = R.match_cast(a, R.Tensor((n,), "float32"))
            s = cls.f(b)
            return s

        @R.function
        def main(x: R.Tensor(dtype="float32", ndim=1)) -> R.Shape(ndim=1):
            cls = Module
            s = cls.g(x)
            return s

    after = REMOVE(Module)
    assert [p.name_hint for p in after["g"].params] == ["a"]
    assert [p.name_hint for p in after["f"].params] == ["param_n"]
    check(REMOVE, after, after)
