# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of graphs."""

import pytest
from tvm import relax
from tvm.relax import TensorStructInfo as T
from tvm.relax import testing


def _module():
    bb = relax.BlockBuilder()
    x = relax.Var("x", T([2, 3], "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(relax.Tuple([x, relax.const(1.0)]))
        bb.emit_func_output(bb.match_cast(out, out.struct_info))
    return bb.get()


def test_nodes_as_text():
    text = testing.dump_ast(_module()["main"])
    for part in ("Function(", "DataflowBlock(", "MatchCast(", 'name_hint="x"', "Constant(data=1.0"):
        assert part in text
    short = testing.dump_ast(relax.Var("y", T([2])), include_struct_info_annotations=False)
    assert short == 'Var(name_hint="y")'
    prim = testing.dump_ast(relax.PrimValue(3), include_struct_info_annotations=False)
    assert prim.startswith("PrimValue(value=PrimExpr(value=`")


def test_a_mutator_in_cpp_that_changes_nothing():
    mod = _module()
    assert testing.transform.ApplyEmptyCppMutator()(mod).same_as(mod)


def test_networks_want_a_builder():
    with pytest.raises(RuntimeError, match="expected to be inside of"):
        testing.nn.emit(relax.const(1))
    data = testing.nn.Placeholder((2, 3))
    assert data.struct_info == T([2, 3], "float32") and data.name_hint == "data"
    with pytest.raises(ValueError, match="expected segments that end at the last of 2"):
        testing.nn.emit_checkpoint_sequential([None, None], [1], data)

    class Scale(testing.nn.Module):
        def __init__(self):
            self.weight = testing.nn.Parameter((3,), name="weight")
            self.inner = [testing.nn.Linear(3, 4)]

    assert [p.name_hint for p in Scale().parameters()] == ["weight", "linear_weight", "linear_bias"]
