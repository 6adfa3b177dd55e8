# SPDX-License-Identifier: Apache-2.0
"""Programs at every stage of lowering print and parse back."""

import pytest
import tvm
from tvm import te, tir
from tvm.script import from_source
from tvm.script import tir as T
from tvm.target import Target


def matmul():
    n = te.var("n")
    A, B = te.placeholder((n, 64), name="A"), te.placeholder((64, 64), name="B")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute((n, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((n, 64), lambda i, j: tir.exp(C[i, j]) + tir.if_then_else(j < 3, C[i, j], 0.0))
    return te.create_prim_func([A, B, D])


def scheduled():
    @T.prim_func
    def main(A: T.Buffer((1024,), "bfloat16"), B: T.Buffer((1024,), "bfloat16"), n: T.int32):
        for io in T.parallel(16):
            for ii in T.unroll(16):
                for iv in T.vectorized(4):
                    with T.block("B"):
                        v = T.axis.spatial(1024, io * 64 + ii * 4 + iv)
                        T.where(io * 64 + ii * 4 + iv < n)
                        B[v] = T.max(A[v], T.bfloat16(0)) * T.sigmoid(A[v])

    return main


def imperative():
    @T.prim_func
    def main(a: T.handle, m: T.int64) -> T.int32:
        n = T.int32()
        A = T.match_buffer(a, (n, n), "int8", offset_factor=1)
        assert m > T.int64(0), "ValueError: m must be positive"
        buf = T.alloc_buffer((n,), "int8")
        for i in range(n):
            with T.block("row"):
                vi = T.axis.spatial(n, i)
                T.reads(A[vi, 0:n])
                T.writes(buf[vi])
                buf[vi] = T.int8(0)
                for j in range(n):
                    if A[vi, j] < buf[vi]:
                        buf[vi] = A[vi, j]
        while A[0, 0] > T.int8(0):
            A[0, 0] = A[0, 0] - T.int8(1)
        return 0

    return main


@pytest.mark.parametrize("make", [matmul, scheduled, imperative])
def test_round_trip_after_each_pass(make):
    stages = []

    @tvm.instrument.pass_instrument
    class RoundTrip:
        def run_after_pass(self, module, info):
            text = module.script(show_meta=True)
            again = from_source(text, check_well_formed=False)
            tvm.ir.assert_structural_equal(again, module, map_free_vars=True)
            assert again.script(show_meta=True) == text
            stages.append(info.name)

    func = make().with_attr("global_symbol", "main").with_attr("target", Target("c"))
    with tvm.transform.PassContext(instruments=[RoundTrip()]):
        module = tvm.tir.get_default_tir_pipeline(Target("c"))(tvm.IRModule({"main": func}))
    assert len(stages) > 20 and len(module.functions) >= 2
