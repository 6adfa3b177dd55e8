# SPDX-License-Identifier: Apache-2.0
"""DataflowBlockRewrite."""

import pytest
from tvm import ir, relax
from tvm.relax import TensorStructInfo as T

F32 = T([2, 3], "float32")
NAME = "test.rewrite.f"
if NAME not in ir.Op.list_op_names():
    ir.register_op_attr(NAME, "FInferStructInfo", lambda call, _: call.args[0].struct_info)
    ir.register_op_attr(NAME, "FPurity", True)


def f(*args):
    return relax.Call(ir.Op.get(NAME), list(args))


def _module():
    bb = relax.BlockBuilder()
    x = relax.Var("x", F32)
    with bb.function("main", [x]):
        with bb.dataflow():
            a = bb.emit(f(x))
            bb.emit(f(a, x))
            out = bb.emit_output(f(a))
        bb.emit_func_output(bb.emit(f(out, x)))
    return bb.get()


def _names(func):
    return [b.var.name_hint for block in func.body.blocks for b in block.bindings]


def test_bindings_come_and_go():
    mod = _module()
    root = mod["main"]
    block = root.body.blocks[0]
    a, b, out = [binding.var for binding in block.bindings]
    rewrite = relax.DataflowBlockRewrite(block, root)
    for used in (a, out):
        with pytest.raises(ValueError, match="expected a variable that nobody uses"):
            rewrite.remove_unused(used)
    rewrite.remove_unused(b)
    with pytest.raises(ValueError, match="expected a variable of the block"):
        rewrite.remove_unused(b)
    rewrite.remove_unused(b, allow_undef=True)
    new = rewrite.add(f(f(a)), name="new", is_dfvar=True)
    assert isinstance(new, relax.DataflowVar) and new.name_hint == "new"
    rewrite.add(relax.VarBinding(relax.Var("extra", F32), f(new)))
    func = rewrite.mutated_root_fn()
    assert relax.analysis.well_formed(func)
    assert _names(func) == ["lv", "gv", "lv2", "new", "extra", "gv1"]
    rewrite.remove_all_unused()
    assert [x.var.name_hint for x in rewrite.mutated_dfb().bindings] == ["lv", "gv"]
    after = rewrite.mutate_irmodule(mod)
    assert _names(after["main"]) == ["lv", "gv", "gv1"] and _names(root)[1] == "lv1"


def test_uses_are_replaced_in_the_whole_function():
    mod = _module()
    root = mod["main"]
    block = root.body.blocks[0]
    a, _, out = [binding.var for binding in block.bindings]
    rewrite = relax.DataflowBlockRewrite(block, root)
    other = rewrite.add(f(a, a), name="other")
    rewrite.replace_all_uses(out, other)
    rewrite.remove_all_unused()
    func = rewrite.mutated_root_fn()
    assert relax.analysis.well_formed(func) and _names(func) == ["lv", "other", "gv1"]
    assert func.body.blocks[1].bindings[0].value.args[0].name_hint == "other"


def test_wrong_blocks():
    root = _module()["main"]
    with pytest.raises(ValueError, match="expected a dataflow block of the function"):
        relax.DataflowBlockRewrite(relax.DataflowBlock([]), root)
