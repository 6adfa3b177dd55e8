# SPDX-License-Identifier: Apache-2.0
"""Local functions as functions of the module."""

from tvm.relax.transform import LambdaLift

from .passes import check, module


def test_function_that_uses_nothing_from_around():
    before = """
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        @R.function
        def inner(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            b = R.add(a, a)
            return b
        y = inner(x)
        return y
    """
    after = """
    @R.function(private=True)
    def main_inner(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        b = R.add(a, a)
        return b

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        y = cls.main_inner(x)
        return y
    """
    result = check(LambdaLift(), before, after)
    assert LambdaLift()(result).same_as(result)
    assert LambdaLift().info.opt_level == 1


def test_captured_variables_are_the_last_parameters():
    before = """
    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor(("n",), "float32")):
        n = T.int64()
        @R.function
        def inner(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            b = R.add(a, x)
            return b
        @R.function
        def size(a: R.Tensor((2,), "float32")) -> R.Shape(ndim=1):
            s = R.shape([n + 1])
            return s
        z = inner(x)
        w = size(z)
        return w
    """
    after = """
    @R.function(private=True)
    def main_inner(a: R.Tensor((2,), "float32"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        b = R.add(a, x)
        return b

    @R.function(private=True)
    def main_size(a: R.Tensor((2,), "float32"), v: R.Shape(["n"])) -> R.Shape(["n + 1"]):
        n = T.int64()
        s = R.shape([n + 1])
        return s

    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = Module
        z = cls.main_inner(x, x)
        w = cls.main_size(z, R.shape([n]))
        return w
    """  # noqa: E501
    check(LambdaLift(), before, after)


def test_recursion():
    before = """
    @R.function
    def main(k: R.Prim("bool"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        @R.function
        def loop(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            if k:
                r = a
            else:
                b = R.add(a, x)
                r = loop(b)
            return r
        y = loop(x)
        return y
    """
    after = """
    @R.function(private=True)
    def main_loop(a: R.Tensor((2,), "float32"), k: R.Prim("bool"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        if k:
            r = a
        else:
            b = R.add(a, x)
            r = cls.main_loop(b, k, x)
        return r

    @R.function
    def main(k: R.Prim("bool"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        y = cls.main_loop(x, k, x)
        return y
    """  # noqa: E501
    check(LambdaLift(), before, after)


def test_function_as_value():
    """A function that is returned, or called by another local one, is a closure."""
    before = """
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        @R.function
        def outer(y: R.Tensor((2,), "float32")) -> R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32"), True):
            @R.function
            def inner(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                b = R.add(a, y)
                return b
            return inner
        f = outer(x)
        z = f(x)
        return z
    """  # noqa: E501
    after = """
    @R.function(private=True)
    def main_outer_inner(a: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        b = R.add(a, y)
        return b

    @R.function(private=True)
    def main_outer(y: R.Tensor((2,), "float32")) -> R.Object:
        cls = Module
        inner = R.make_closure(cls.main_outer_inner, (y,))
        return inner

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        f = cls.main_outer(x)
        z = R.invoke_pure_closure(f, (x,), sinfo_args=[R.Tensor((2,), "float32")])
        return z
    """  # noqa: E501
    check(LambdaLift(), before, after)


def test_function_that_another_local_one_calls():
    before = """
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        @R.function
        def first(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            b = R.add(a, x)
            return b
        @R.function
        def second(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            b = first(a)
            return b
        y = second(x)
        return y
    """
    after = """
    @R.function(private=True)
    def main_first(a: R.Tensor((2,), "float32"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        b = R.add(a, x)
        return b

    @R.function(private=True)
    def main_second(a: R.Tensor((2,), "float32"), first: R.Object) -> R.Tensor((2,), "float32"):
        b = R.invoke_pure_closure(first, (a,), sinfo_args=[R.Tensor((2,), "float32")])
        return b

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        first = R.make_closure(cls.main_first, (x,))
        y = cls.main_second(x, first)
        return y
    """  # noqa: E501
    check(LambdaLift(), before, after)


def test_names_stay_unique():
    names = {
        var.name_hint
        for var in LambdaLift()(
            module("""
    @R.function
    def main_f(x: R.Object) -> R.Object:
        return x

    @R.function
    def main(x: R.Object) -> R.Object:
        @R.function
        def f(a: R.Object) -> R.Object:
            return a
        y = f(x)
        return y
    """)
        ).get_global_vars()
    }
    assert names == {"main", "main_f", "main_f1"}
