# SPDX-License-Identifier: Apache-2.0
"""Marks on PrimFuncs whose arguments are weights."""

from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

from .passes import check

ATTACH = transform.AttachAttrLayoutFreeBuffers()


@I.ir_module
class Before:
    @T.prim_func(private=True)
    def f(
        a: T.Buffer((T.int64(2),), "float32"),
        b: T.Buffer((T.int64(2),), "float32"),
        c: T.Buffer((T.int64(2),), "float32"),
    ):
        for i in range(T.int64(2)):
            with T.block("c"):
                vi = T.axis.spatial(T.int64(2), i)
                c[vi] = a[vi] + b[vi]

    @R.function
    def main(x: R.Tensor((2,), "float32"), w: R.Tensor((2,), "float32")):
        R.func_attr({"num_input": 1})
        cls = Before
        y = R.call_tir(cls.f, (x, w), out_sinfo=R.Tensor((2,), "float32"))
        return y


@I.ir_module
class Expected:
    @T.prim_func(private=True)
    def f(
        a: T.Buffer((T.int64(2),), "float32"),
        b: T.Buffer((T.int64(2),), "float32"),
        c: T.Buffer((T.int64(2),), "float32"),
    ):
        T.func_attr({"layout_free_buffers": [1]})
        for i in range(T.int64(2)):
            with T.block("c"):
                vi = T.axis.spatial(T.int64(2), i)
                c[vi] = a[vi] + b[vi]

    @R.function
    def main(x: R.Tensor((2,), "float32"), w: R.Tensor((2,), "float32")):
        R.func_attr({"num_input": 1})
        cls = Expected
        y = R.call_tir(cls.f, (x, w), out_sinfo=R.Tensor((2,), "float32"))
        return y


def test_weights_are_marked():
    check(ATTACH, Before, Expected)
    without = Before.clone()
    without["main"] = Before["main"].without_attr("num_input")
    assert ATTACH(without).same_as(without)


def test_calls_that_differ_get_functions_of_their_own():
    @I.ir_module
    class Two:
        @T.prim_func(private=True)
        def f(
            a: T.Buffer((T.int64(2),), "float32"),
            b: T.Buffer((T.int64(2),), "float32"),
            c: T.Buffer((T.int64(2),), "float32"),
        ):
            for i in range(T.int64(2)):
                with T.block("c"):
                    vi = T.axis.spatial(T.int64(2), i)
                    c[vi] = a[vi] + b[vi]

        @R.function
        def main(x: R.Tensor((2,), "float32"), w: R.Tensor((2,), "float32")):
            R.func_attr({"num_input": 1})
            cls = Two
            y = R.call_tir(cls.f, (x, w), out_sinfo=R.Tensor((2,), "float32"))
            z = R.call_tir(cls.f, (w, y), out_sinfo=R.Tensor((2,), "float32"))
            u = R.call_tir(cls.f, (z, y), out_sinfo=R.Tensor((2,), "float32"))
            return u

    after = ATTACH(Two)
    calls = [b.value.args[0].name_hint for b in after["main"].body.blocks[0].bindings]
    free = [list((after[name].attrs or {}).get("layout_free_buffers", [])) for name in calls]
    assert free == [[1], [0], []] and calls[2] == "f"
    check(ATTACH, after, after)
