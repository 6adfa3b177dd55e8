# SPDX-License-Identifier: Apache-2.0
"""Blocks that bring weights into another layout as PrimFuncs of their own."""

from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

from .passes import check


@I.ir_module
class Before:
    @T.prim_func(private=True)
    def f(
        x: T.Buffer((T.int64(2), T.int64(3)), "float32"),
        w: T.Buffer((T.int64(2), T.int64(3)), "float32"),
        y: T.Buffer((T.int64(2), T.int64(3)), "float32"),
    ):
        with T.block("root"):
            packed = T.alloc_buffer((T.int64(3), T.int64(2)))
            for i, j in T.grid(T.int64(3), T.int64(2)):
                with T.block("packed"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                    packed[vi, vj] = w[vj, vi]
            for i, j in T.grid(T.int64(2), T.int64(3)):
                with T.block("y"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vi, vj] + packed[vj, vi]

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((2, 3), "float32")):
        cls = Before
        with R.dataflow():
            y = R.call_tir(cls.f, (x, w), out_sinfo=R.Tensor((2, 3), "float32"))
            R.output(y)
        return y


@I.ir_module
class Expected:
    @T.prim_func(private=True)
    def f_weight_prepack(
        w: T.Buffer((T.int64(2), T.int64(3)), "float32"),
        packed: T.Buffer((T.int64(3), T.int64(2)), "float32"),
    ):
        T.func_attr({"tir.noalias": True})
        for i, j in T.grid(T.int64(3), T.int64(2)):
            with T.block("packed"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                packed[vi, vj] = w[vj, vi]

    @T.prim_func(private=True)
    def f_prepacked(
        x: T.Buffer((T.int64(2), T.int64(3)), "float32"),
        packed: T.Buffer((T.int64(3), T.int64(2)), "float32"),
        y: T.Buffer((T.int64(2), T.int64(3)), "float32"),
    ):
        for i, j in T.grid(T.int64(2), T.int64(3)):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] + packed[vj, vi]

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((2, 3), "float32")):
        cls = Expected
        with R.dataflow():
            p = R.call_tir(cls.f_weight_prepack, (w,), out_sinfo=R.Tensor((3, 2), "float32"))
            y = R.call_tir(cls.f_prepacked, (x, p), out_sinfo=R.Tensor((2, 3), "float32"))
            R.output(y)
        return y


def test_copies_of_weights_are_split_off():
    check(transform.SplitLayoutRewritePreproc(), Before, Expected)
