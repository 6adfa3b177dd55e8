# SPDX-License-Identifier: Apache-2.0
"""Dataflow blocks as plain ones."""

from tvm.relax import transform

from tests.relax.transform.bindings import build, f, flow, g, same


def test_to_non_dataflow():
    before = build(flow(lambda bb, x: bb.emit_output(f(bb.emit(g(x))))))
    after = transform.ToNonDataflow()(before)
    same(after, build(lambda bb, x: bb.emit(f(bb.emit(g(x))))))
