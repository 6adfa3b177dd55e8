# SPDX-License-Identifier: Apache-2.0
"""Passes written in Python."""

import pytest
from tvm import relax
from tvm.relax import transform

from tests.relax.transform.bindings import G, build, f, flow, g, same


def test_passes_written_in_python():
    seen = []

    @transform.function_pass(opt_level=1, name="Mine")
    def mine(func, mod, ctx):
        seen.append((type(func).__name__, "main" in mod))
        return func.with_attr("seen", 1)

    assert mine(build(lambda bb, x: x))["main"].attrs["seen"] == 1
    assert seen == [("Function", True)] and mine.info.name == "Mine"

    @transform.dataflowblock_pass(opt_level=0)
    class Swap:
        def transform_dataflowblock(self, block, mod, ctx):
            bindings = [
                relax.VarBinding(b.var, relax.Call(G, b.value.args)) for b in block.bindings
            ]
            return relax.DataflowBlock(bindings)

    before = build(flow(lambda bb, x: bb.emit_output(f(bb.emit(f(x))))))
    same(Swap()(before), build(flow(lambda bb, x: bb.emit_output(g(bb.emit(g(x)))))))

    @transform.dataflowblock_pass(opt_level=0, name="Drop")
    def drop(block, mod, ctx):
        return relax.DataflowBlock([])

    with pytest.raises(ValueError, match="Drop: expected the block to define its output 'gv'"):
        drop(before)

    @transform.function_pass(opt_level=0, name="Nothing")
    def nothing(func, mod, ctx):
        return None

    with pytest.raises(TypeError, match="Nothing: expected the pass to return a relax.Function"):
        nothing(before)
