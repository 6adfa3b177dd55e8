# SPDX-License-Identifier: Apache-2.0
"""Runs of bindings without side effects as dataflow blocks."""

from tvm import relax
from tvm.relax import transform

from tests.relax.transform.bindings import EFFECT, build, f, g, same


def test_convert_to_dataflow():
    def before(bb, x):
        a = bb.emit(g(x))
        b = bb.emit(f(a))
        bb.emit(relax.Call(EFFECT, [b]))
        return bb.emit(f(b))

    def expected(bb, x):
        with bb.dataflow():
            b = bb.emit_output(f(bb.emit(g(x))))
        bb.emit(relax.Call(EFFECT, [b]))
        return bb.emit(f(b))

    same(transform.ConvertToDataflow()(build(before, pure=False)), build(expected, pure=False))
    three = build(before, pure=False)
    assert transform.ConvertToDataflow(min_size=3)(three).same_as(three)
