# SPDX-License-Identifier: Apache-2.0
"""Buffers of PrimFuncs in the memory in which their callers have the tensors."""

from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

from .passes import check


@I.ir_module
class Before:
    I.module_global_infos({"vdevice": [I.vdevice("opencl", 0, "global.texture")]})

    @T.prim_func(private=True)
    def f(a: T.Buffer((T.int64(2),), "float32"), b: T.Buffer((T.int64(2),), "float32")):
        for i in range(T.int64(2)):
            with T.block("b"):
                vi = T.axis.spatial(T.int64(2), i)
                b[vi] = a[vi] + T.float32(1)

    @R.function
    def main(x: R.Tensor((2,), "float32", vdevice="opencl:0:global.texture")):
        cls = Before
        y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((2,), "float32"))
        return y


@I.ir_module
class Expected:
    I.module_global_infos({"vdevice": [I.vdevice("opencl", 0, "global.texture")]})

    @T.prim_func(private=True)
    def f(
        a: T.Buffer((T.int64(2),), "float32", scope="global.texture"),
        b: T.Buffer((T.int64(2),), "float32"),
    ):
        for i in range(T.int64(2)):
            with T.block("b"):
                vi = T.axis.spatial(T.int64(2), i)
                b[vi] = a[vi] + T.float32(1)

    @R.function
    def main(x: R.Tensor((2,), "float32", vdevice="opencl:0:global.texture")):
        cls = Expected
        y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((2,), "float32"))
        return y


def test_scopes_follow_the_arguments():
    check(transform.SpecializePrimFuncBasedOnCallSite(), Before, Expected)
