# SPDX-License-Identifier: Apache-2.0
"""Operators that are lowered before all others."""

from tvm import relax
from tvm.relax.transform import DispatchSampling, DispatchSortScan

from .passes import module

TEXT = """
@R.function
def main(x: R.Tensor((4, 8), "float32"), u: R.Tensor((4, 1), "float32"), s: R.Tensor((4, 1), "int64")):
    with R.dataflow():
        a = R.sort(x)
        b = R.argsort(a)
        c = R.topk(a, k=2)
        d = R.cumsum(a, axis=1)
        e = R.cumprod(d, axis=1)
        f = R.multinomial_from_uniform(e, u, s)
        g = R.exp(e)
        R.output(b, c, f, g)
    return (b, c, f, g)
"""  # noqa: E501


def _operators(mod):
    return [str(b.value.op.name) for b in mod["main"].body.blocks[0].bindings]


def test_only_these_operators():
    mod = module(TEXT)
    names = _operators(mod)
    tir, sort = "relax.call_tir", DispatchSortScan()(mod)
    assert _operators(sort) == [tir] * 5 + names[5:]
    assert _operators(DispatchSampling()(mod)) == [*names[:5], tir, names[6]]
    assert relax.analysis.well_formed(sort) and DispatchSortScan()(sort).same_as(sort)
