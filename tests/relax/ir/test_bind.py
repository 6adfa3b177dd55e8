# SPDX-License-Identifier: Apache-2.0
"""Functions with variables replaced."""

import numpy as np
import pytest
from tvm import ir, relax, tir
from tvm.relax import TensorStructInfo as T


def _function():
    n = tir.Var("n", "int64")
    x, y = relax.Var("x", T([n, 3])), relax.Var("y", T([3, n]))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, y]):
        bb.emit_func_output(bb.emit(relax.Tuple([x, y, relax.ShapeExpr([n + 1])])))
    return bb.get()["main"]


def test_copies_share_no_variables():
    f = _function()
    g = relax.utils.copy_with_new_vars(f)
    assert ir.structural_equal(f, g) and not g.params[0].same_as(f.params[0])
    assert not g.params[0].struct_info.shape[0].same_as(f.params[0].struct_info.shape[0])
    both = {"f": f.without_attr("global_symbol"), "g": g.without_attr("global_symbol")}
    assert relax.analysis.well_formed(ir.IRModule(both))


def test_symbolic_variables_are_bound():
    f = _function()
    for key in ("n", f.params[0].struct_info.shape[0]):
        g = f.bind_symbolic_vars({key: 4})
        assert [p.struct_info for p in g.params] == [T([4, 3]), T([3, 4])]
        assert g.ret_struct_info.fields[2] == relax.ShapeStructInfo([5])
        assert relax.analysis.well_formed(g)
    with pytest.raises(ValueError, match=r"variable of the function \(n\), got 'k'"):
        f.bind_symbolic_vars({"k": 1})


def test_parameters_are_bound():
    f = _function()
    g = f.bind_params({"x": np.zeros((4, 3), "float32")})
    assert [p.name_hint for p in g.params] == ["y"]
    assert g.params[0].struct_info == T([3, 4])
    assert g.ret_struct_info.fields[2] == relax.ShapeStructInfo([5])
    assert relax.analysis.well_formed(g)
    for bad in (np.zeros((4, 3), "float16"), np.zeros((4, 2), "float32"), np.zeros(3, "float32")):
        with pytest.raises(ValueError, match="for the parameter 'x', got"):
            f.bind_params({"x": bad})
    with pytest.raises(ValueError, match=r"function \(x, .*\), got 'z', which is none"):
        f.bind_params({"z": np.zeros(1, "float32")})


def test_functions_are_inlined():
    bb = relax.BlockBuilder()
    n = tir.Var("n", "int64")
    p = relax.Var("p", T([n]))
    with bb.function("callee", [p], private=True):
        with bb.dataflow():
            t = bb.emit(relax.Tuple([p, relax.ShapeExpr([n + 1])]))
            out = bb.emit_output(relax.TupleGetItem(t, 1))
        bb.emit_func_output(out)
    callee = bb.get().get_global_var("callee")
    x = relax.Var("x", T([4]))
    with bb.function("main", [x]):
        a = bb.emit(relax.Call(callee, [x]))
        b = bb.emit(relax.Call(callee, [x]))
        bb.emit_func_output(bb.emit(relax.Tuple([a, b])))
    mod = bb.get()
    for key in (callee, "callee"):
        f = mod["main"].inline_functions({key: mod["callee"]})
        assert relax.analysis.well_formed(f)
        assert not list(relax.analysis.all_global_vars(f))
        shape = relax.ShapeStructInfo([5])
        assert f.ret_struct_info == relax.TupleStructInfo([shape, shape])
