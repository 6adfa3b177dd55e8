# SPDX-License-Identifier: Apache-2.0
"""Bad graphs: an error that says what is wrong, and builder and module as they were."""

import copy
import json

import numpy as np
import pytest
import tvm
from tvm import ir, relax, tir
from tvm.relax import op
from tvm.script import from_source

from tests.relax.op.test_errors import TYPE_ERRORS, VALUE_ERRORS

INFO = relax.TensorStructInfo((2, 3), "float32")
x = relax.Var("x", INFO)


def graph(emit):
    """A function that returns the last of what `emit(builder)` emitted, or a sum."""
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.add(x, x))
            emit(bb)
            y = bb.emit_output(op.add(y, y))
        bb.emit_func_output(y)
    return bb.get()


@pytest.mark.parametrize("message", [*VALUE_ERRORS, *TYPE_ERRORS])
def test_a_refused_call_leaves_no_trace(message):
    """Not even of the values nested in its arguments."""

    def emit(bb):
        with pytest.raises(tvm.TVMError):
            bb.emit({**VALUE_ERRORS, **TYPE_ERRORS}[message]())
        with pytest.raises(tvm.TVMError):
            bb.emit(relax.Tuple([op.exp(op.negative(x)), op.add(x, op.reshape(x, (7,)))]))

    ir.assert_structural_equal(graph(emit), graph(lambda bb: None))


def test_unknown_operators_attributes_and_types():
    with pytest.raises(AttributeError, match="did you mean 'relax.nn.softmax'"):
        ir.Op.get("relax.nn.sofmax")
    with pytest.raises(AttributeError, match="did you mean 'softmax'"):
        op.nn.sofmax(x)
    with pytest.raises(AttributeError, match="axes"):
        op.nn.softmax(x).attrs.axes  # noqa: B018
    with pytest.raises((TypeError, ValueError), match="`flot32`, did you mean 'float32'"):
        op.astype(x, "flot32")
    with pytest.raises((TypeError, ValueError), match="`flot32`, did you mean 'float32'"):
        relax.TensorStructInfo((2,), "flot32")
    with pytest.raises(ValueError, match="`complex`$"):  # nothing is near
        relax.TensorStructInfo((2,), "complex")


def test_cyclic_json():
    """A node that contains itself is refused, and one that contains what is not there."""
    text = ir.save_json(relax.Function([x], relax.Tuple([x, relax.Tuple([x])])))
    saved = json.loads(text)
    arrays = [i for i, node in enumerate(saved["nodes"]) if node["type"] == "ffi.Array"]
    cyclic = copy.deepcopy(saved)
    cyclic["nodes"][arrays[-1]]["data"] = [saved["root_index"]]
    with pytest.raises(RecursionError, match="nested too deeply"):
        ir.load_json(json.dumps(cyclic))
    for at in (len(saved["nodes"]), -1):
        outside = copy.deepcopy(saved)
        outside["nodes"][arrays[-1]]["data"] = [at]
        with pytest.raises((ValueError, IndexError, TypeError)):
            ir.load_json(json.dumps(outside))
    ir.assert_structural_equal(ir.load_json(text), ir.load_json(text))


def _calls(callee, *args):
    """A module whose main calls a function that is another module's."""
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.Call(callee, [*args])))
    return bb.get()


def test_functions_of_another_module():
    other = graph(lambda bb: None)
    mod = _calls(other.get_global_var("main"), x)
    assert relax.analysis.well_formed(mod)  # it has a main of its own
    bb = relax.BlockBuilder()
    stranger = bb.add_func(other["main"].without_attr("global_symbol"), "stranger")
    mod = _calls(stranger, x)
    assert not relax.analysis.well_formed(mod)
    with pytest.raises(ValueError, match="stranger"):
        tvm.compile(mod, "llvm")


def test_struct_info_of_another_module():
    """Symbolic variables belong to the function that defines them."""
    n = tir.Var("n", "int64")
    row = relax.TensorStructInfo((n, 3), "float32")
    bb = relax.BlockBuilder()
    y = relax.Var("y", row)
    with bb.function("other", [y]):
        bb.emit_func_output(bb.emit(op.exp(y)))
    other = bb.get()
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        call = op.call_dps_packed("f", (x,), out_sinfo=other["other"].ret_struct_info)
        bb.emit_func_output(bb.emit(call))
    mod = bb.get()
    assert not relax.analysis.well_formed(mod)
    with pytest.raises(ValueError, match="the variables of n .* to be defined before"):
        tvm.compile(mod, "llvm")
    both = ir.IRModule({**dict(mod.functions), **dict(other.functions)})
    assert not relax.analysis.well_formed(both)


def test_recursion_without_annotation():
    """What a function returns that says nothing of it and calls itself: some object."""
    source = """
@I.ir_module
class M:
    @R.function
    def f(x: R.Tensor((2,), "float32")):
        y = M.f(x)
        return y
"""
    mod = from_source(source)
    assert isinstance(mod["f"].ret_struct_info, relax.ObjectStructInfo)
    assert relax.analysis.well_formed(mod)
    with pytest.raises(tvm.error.DiagnosticError, match="add: argument 'x1': expected"):
        from_source(source.replace("return y", "return R.add(y, y)"))


def test_ten_thousand_levels():
    """One expression, nested so deep, goes through the language and is run."""
    deep = x
    for i in range(10_000):
        deep = op.negative(deep) if i % 2 else op.abs(deep)
    mod = ir.IRModule({"main": relax.Function([x], deep, INFO).with_attr("global_symbol", "main")})
    mod = relax.transform.Normalize()(mod)
    assert relax.analysis.well_formed(mod)
    assert len(mod["main"].body.blocks[0].bindings) == 10_000
    ir.assert_structural_equal(ir.load_json(ir.save_json(mod)), mod)
    lowered = relax.transform.LegalizeOps()(mod)
    assert relax.analysis.well_formed(lowered) and len(lowered.functions) == 3


def test_a_long_chain_runs():
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for _ in range(10_000):
                y = bb.emit(op.negative(y))
            y = bb.emit_output(y)
        bb.emit_func_output(y)
    mod = bb.get()
    assert relax.analysis.well_formed(mod)
    data = np.arange(6, dtype="float32").reshape(2, 3)
    with tvm.transform.PassContext(disabled_pass=["FuseOps"]):
        executable = tvm.compile(mod, "llvm")
    machine = relax.VirtualMachine(executable, tvm.cpu())
    np.testing.assert_array_equal(machine["main"](tvm.runtime.tensor(data)).numpy(), data)


def test_attributes_of_a_function_are_a_dictionary():
    endless = relax.Call(relax.ExternFunc("f"), [])  # its items have no end
    for attrs in (endless, "text", [("key", 1)]):
        with pytest.raises(TypeError, match="expected a dictionary of attributes, got"):
            relax.BlockBuilder().function("main", [], attrs)


def test_items_of_what_is_no_tuple():
    unknown = relax.Call(ir.Op.get("relax.nn.relu"), [relax.Var("y", INFO)])
    with pytest.raises(TypeError, match="to take the items of, got one without struct info"):
        list(unknown)
    with pytest.raises(TypeError, match="to take the items of, got R.Tensor"):
        list(x)
    assert list(relax.Tuple([unknown, unknown])) == [unknown, unknown]
    first, second = relax.Var("t", relax.TupleStructInfo([INFO, INFO]))
    assert (first.index, second.index) == (0, 1)
