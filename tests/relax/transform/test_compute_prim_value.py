# SPDX-License-Identifier: Apache-2.0
"""Scalars computed from symbolic variables."""

from tvm import ir
from tvm.relax.transform import ComputePrimValue

from .passes import module

KERNEL = """
@T.prim_func(private=True)
def compute_symbolic_expr(n: T.int64, m: T.int64) -> T.bool:
    T.func_attr({"tir.is_host_func": True})
    T.ret(n * T.int64(2) + m > T.int64(16))
"""


def test_condition_and_argument():
    before = """
    @R.function(pure=False)
    def main(x: R.Tensor(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        if R.prim_value(n * 2 + m > 16):
            y = R.call_packed("f", R.prim_value(n), R.prim_value(3), sinfo_args=[R.Object])
        else:
            y = R.call_packed("g", R.prim_value(n * 2 + m > 16), sinfo_args=[R.Object])
        return y
    """
    after = """
    @R.function(pure=False)
    def main(x: R.Tensor(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        cls = Module
        gv = cls.compute_symbolic_expr(R.prim_value(n), R.prim_value(m))
        if gv:
            y = R.call_packed("f", R.prim_value(n), R.prim_value(3), sinfo_args=[R.Object])
        else:
            gv1 = cls.compute_symbolic_expr(R.prim_value(n), R.prim_value(m))
            y = R.call_packed("g", gv1, sinfo_args=[R.Object])
        return y
    """
    result = ComputePrimValue()(module(before))
    ir.assert_structural_equal(result, module(KERNEL, after))


def test_nothing_to_compute():
    mod = module("""
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        y = R.call_pure_packed("f", R.prim_value(n), R.prim_value(2), sinfo_args=[R.Object()])
        return y
    """)
    assert ComputePrimValue()(mod).same_as(mod)
