# SPDX-License-Identifier: Apache-2.0
"""Programs brought into normal form."""

from tvm import ir, relax
from tvm.relax import transform

from tests.relax.transform.bindings import F32, build, f, g, same


def test_normalize():
    x = relax.Var("x", F32)
    raw = relax.Function([x], f(g(x), g(x)), F32, attrs={"global_symbol": "main"})
    after = transform.Normalize()(ir.IRModule({"main": raw}))

    def expected(bb, x):
        a, b = bb.emit(g(x)), bb.emit(g(x))
        return bb.emit(f(a, b))

    same(after, build(expected))
    assert transform.Normalize()(after).same_as(after)
    info = transform.Normalize().info
    assert (info.name, info.opt_level) == ("Normalize", 1)
