# SPDX-License-Identifier: Apache-2.0
"""BlockBuilder: normal form, names, scopes, functions, errors that leave it as it was."""

import pytest
import tvm
from tvm import ir, relax, te, tir
from tvm.relax import FuncStructInfo, PrimStructInfo, ShapeStructInfo, TensorStructInfo

F32 = TensorStructInfo([2, 3], "float32")


def _infer(call, builder):
    if len(call.args) != 2:
        raise ValueError(f"test.relax.join: expected 2 arguments, got {len(call.args)}")
    return call.args[0].struct_info


def _op(name, infer=_infer, pure=True):
    if name not in ir.Op.list_op_names():
        ir.register_op_attr(name, "FInferStructInfo", infer)
        ir.register_op_attr(name, "FPurity", pure)
    return ir.Op.get(name)


JOIN = _op("test.relax.join")
EFFECT = _op("test.relax.effect", lambda call, builder: relax.TupleStructInfo([]), pure=False)


def join(a, b):
    return relax.Call(JOIN, [a, b])


def _texts(block):
    return [
        (b.var.name_hint, [getattr(a, "name_hint", None) for a in b.value.args])
        for b in block.bindings
    ]


def test_nested_values_get_bindings_of_their_own():
    bb = relax.BlockBuilder()
    x = relax.Var("x", F32)
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(join(join(x, x), x))
            z = bb.emit_output(y)
        bb.emit_func_output(z)
    mod = bb.get()
    func = mod["main"]
    (block,) = func.body.blocks
    assert isinstance(block, relax.DataflowBlock)
    assert [b.var.name_hint for b in block.bindings] == ["lv", "lv1", "gv"]
    assert [isinstance(b.var, relax.DataflowVar) for b in block.bindings] == [True, True, False]
    assert block.bindings[1].value.args[0].same_as(block.bindings[0].var)
    assert func.body.body.same_as(z) and func.struct_info == FuncStructInfo([F32], F32)
    assert func.attrs["global_symbol"] == "main"
    assert relax.analysis.well_formed(mod)


def test_one_object_used_twice_is_bound_once():
    bb = relax.BlockBuilder()
    x = relax.Var("x", F32)
    with bb.function("f", [x], private=True):
        inner = join(x, x)
        bb.emit_func_output(bb.emit(join(inner, inner)))
    func = bb.get()["f"]
    assert _texts(func.body.blocks[0]) == [("gv", ["x", "x"]), ("gv1", ["gv", "gv"])]
    assert "global_symbol" not in func.attrs


def test_names_are_unique_without_underscores():
    bb = relax.BlockBuilder()
    assert [bb.get_unique_name("a") for _ in range(3)] == ["a", "a1", "a2"]
    x = relax.Var("x", F32)
    f = relax.Function([x], x)
    g = relax.Function([x], x, attrs={"k": 1})
    h = relax.Function([x], x, attrs={"k": 2})
    names = [bb.add_func(func, "f").name_hint for func in (f, g, h, f)]
    assert names == ["f", "f1", "f2", "f"]
    bb.update_func(bb.get().get_global_var("f1"), relax.Function([x], x, attrs={"k": 3}))
    assert bb.get()["f1"].attrs["k"] == 3
    start = bb.get()
    assert relax.BlockBuilder(start).add_func(h, "other").name_hint == "f2"


def test_branches_and_local_functions():
    bb = relax.BlockBuilder()
    x, c = relax.Var("x", F32), relax.Var("c", PrimStructInfo("bool"))
    with bb.function("main", [x, c]):
        p = relax.Var("p", F32)
        local = bb.emit(relax.Function([p], relax.SeqExpr([], join(join(p, p), p)), F32), "local")
        branch = bb.emit(relax.If(c, join(x, join(x, x)), relax.Call(local, [x])))
        bb.emit_func_output(branch)
    mod = bb.finalize()
    (block,) = mod["main"].body.blocks
    inner = block.bindings[0].value
    assert len(inner.body.blocks[0].bindings) == 2
    branch = block.bindings[1].value
    assert branch.struct_info == F32
    assert len(branch.true_branch.blocks[0].bindings) == 2
    assert relax.analysis.well_formed(mod)


def test_sequences_are_flattened_and_neighbours_merge():
    bb = relax.BlockBuilder()
    x = relax.Var("x", F32)
    a, b, lv = relax.Var("a", F32), relax.Var("b", F32), relax.DataflowVar("lv", F32)
    plain = relax.BindingBlock([relax.VarBinding(a, join(x, x))])
    flow = relax.DataflowBlock(
        [relax.VarBinding(lv, join(a, a)), relax.VarBinding(b, join(lv, lv))]
    )
    more = relax.BindingBlock([relax.VarBinding(relax.Var("d", F32), join(b, b))])
    empty = relax.BindingBlock([])
    nested = relax.SeqExpr([plain, empty, flow, more], b)
    y = relax.Var("y", F32)
    body = relax.SeqExpr(
        [relax.BindingBlock([relax.VarBinding(y, nested)]), relax.BindingBlock([])], join(y, y)
    )
    func = bb.normalize(relax.Function([x], body, F32))
    kinds = [type(block).__name__ for block in func.body.blocks]
    assert kinds == ["BindingBlock", "DataflowBlock", "BindingBlock"]
    names = [b.var.name_hint for block in func.body.blocks for b in block.bindings]
    assert names == ["a", "lv", "b", "d", "y", "gv"]
    assert relax.analysis.well_formed(func)
    assert bb.normalize(func).same_as(func)


def test_void_variables_are_empty_tuples():
    bb = relax.BlockBuilder()
    x = relax.Var("x", F32)
    with bb.function("main", [x], pure=False):
        void = bb.emit(relax.Call(EFFECT, [x]))
        bb.emit_func_output(void)
    assert bb.get()["main"].body.body.struct_info == relax.TupleStructInfo([])
    assert isinstance(bb.get()["main"].body.body, relax.Tuple)


def test_match_cast():
    bb = relax.BlockBuilder()
    n = tir.Var("n", "int64")
    x = relax.Var("x", TensorStructInfo(dtype="float32", ndim=2))
    with bb.function("main", [x]):
        y = bb.match_cast(x, TensorStructInfo([n, 3], "float32"))
        assert y.struct_info == TensorStructInfo([n, 3], "float32")
        assert bb.lookup_binding(y).same_as(x) and bb.lookup_binding(x) is None
        with pytest.raises(ValueError, match="match_cast: expected something that"):
            bb.match_cast(x, TensorStructInfo([n], "float32"))
        bb.emit_func_output(y)
    assert bb.get()["main"].ret_struct_info == x.struct_info  # n is not known outside
    assert relax.analysis.well_formed(bb.get())


def test_calls_bind_symbolic_variables():
    bb = relax.BlockBuilder()
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    p = relax.Var("p", TensorStructInfo([n, m], "float32"))
    q = relax.Var("q", ShapeStructInfo([m]))
    with bb.function("callee", [p, q], private=True):
        bb.emit_func_output(bb.emit(relax.Tuple([p, q])))
    callee = bb.get().get_global_var("callee")
    k = tir.Var("k", "int64")
    x = relax.Var("x", TensorStructInfo([k + 1, 4], "float32"))
    with bb.function("main", [x, relax.Var("s", ShapeStructInfo([k]))]):
        r = bb.emit(relax.Call(callee, [x, relax.ShapeExpr([4])]))
        assert r.struct_info == relax.TupleStructInfo([x.struct_info, ShapeStructInfo([4])])
        with pytest.raises(tvm.TVMError, match="expected argument 1 to be") as error:
            bb.emit(relax.Call(callee, [x, relax.ShapeExpr([5])]))
        assert isinstance(error.value, ValueError)
        with pytest.raises(ValueError, match="callee: expected 2 arguments, got 1"):
            bb.emit(relax.Call(callee, [x]))
        bb.emit_func_output(r)
    assert relax.analysis.well_formed(bb.get())


def test_packed_calls_return_what_the_caller_says():
    bb = relax.BlockBuilder()
    x = relax.Var("x", F32)
    with bb.function("main", [x], pure=False):
        call = relax.Call(relax.ExternFunc("f"), [x], sinfo_args=[F32])
        assert bb.emit(call).struct_info == F32
        both = relax.Call(relax.ExternFunc("f"), [x], sinfo_args=[F32, F32])
        assert bb.emit(both).struct_info == relax.TupleStructInfo([F32, F32])
        bb.emit_func_output(bb.emit(relax.Call(relax.ExternFunc("f"), [x])))
    assert bb.get()["main"].ret_struct_info == relax.ObjectStructInfo()


def test_misuse_is_an_error():
    bb = relax.BlockBuilder()
    x = relax.Var("x", F32)
    with pytest.raises(RuntimeError, match="expected emit_func_output before the end"):
        with bb.function("main", [x]):
            bb.emit(join(x, x))
    with pytest.raises(RuntimeError, match="expected one output of 'main'"):
        with bb.function("main", [x]):
            bb.emit_func_output(x)
            bb.emit_func_output(x)
    with pytest.raises(RuntimeError, match="expected the parameters of 'f' once"):
        with bb.function("f", [x]):
            bb.emit_func_output(x, params=[x])
    with pytest.raises(RuntimeError, match="expected the parameters of 'g', got none"):
        with bb.function("g"):
            bb.emit_func_output(x)
    with pytest.raises(RuntimeError, match="expected to be inside of a function"):
        bb.emit_func_output(x)
    with pytest.raises(RuntimeError, match="expected an open function or block"):
        bb.emit(join(x, x))
    with pytest.raises(RuntimeError, match="expected to be inside of a dataflow block"):
        with bb.function("h", [x]):
            bb.emit_output(x)
    with pytest.raises(TypeError, match="parameters that are variables, got int"):
        bb.function("h", [1])
    assert relax.BlockBuilder.current() is None and bb._depth() == 0


def test_errors_leave_the_builder_as_it_was():
    bb = relax.BlockBuilder()
    x = relax.Var("x", F32)
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(join(x, x))
            with pytest.raises(ValueError, match="expected 2 arguments, got 1"):
                bb.emit(relax.Call(JOIN, [join(join(x, y), x)]))
            with pytest.raises(ValueError, match="expected an operator with FInferStructInfo"):
                bb.emit(relax.Call(ir.Op.get("tir.exp"), [join(x, x)]))
            z = bb.emit_output(join(y, y))
        bb.emit_func_output(z)
    names = [b.var.name_hint for b in bb.get()["main"].body.blocks[0].bindings]
    assert len(names) == 2 and names[0] == "lv"


def test_deep_and_long_programs():
    bb = relax.BlockBuilder()
    x = relax.Var("x", F32)
    deep = x
    for _ in range(10000):
        deep = relax.Call(FLAT, [deep])
    with bb.function("main", [x]):
        y = bb.emit(deep)
        for _ in range(10000):
            y = bb.emit(relax.Call(FLAT, [y]))
        bb.emit_func_output(y)
    func = bb.get()["main"]
    assert len(func.body.blocks[0].bindings) == 20000
    assert relax.analysis.well_formed(func)
    again = ir.load_json(ir.save_json(func))
    assert ir.structural_equal(func, again)


def test_deep_tuples():
    bb = relax.BlockBuilder()
    x = relax.Var("x", F32)
    deep = relax.Call(FLAT, [x])
    for _ in range(3000):
        deep = relax.Tuple([deep, x])
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(deep))
    assert len(bb.get()["main"].body.blocks[0].bindings) == 2
    assert relax.analysis.well_formed(bb.get())


FLAT = _op("test.relax.flat", lambda call, builder: call.args[0].struct_info)


def _scaled(a, factor, shape=None):
    return te.compute(a.shape, lambda *i: a(*i) * factor, name="scaled")


def test_tensor_expressions_become_functions_of_the_module():
    bb = relax.BlockBuilder()
    n = tir.Var("n", "int64")
    x = relax.Var("x", TensorStructInfo([n, 3], "float32"))
    with bb.function("main", [x]):
        func, args, out, tir_vars = relax.utils.gen_call_tir_inputs(_scaled, x, 2.0)
        assert out == TensorStructInfo([n, 3], "float32") and tir_vars is None
        assert args.fields[0].same_as(x)
        gv = bb.add_func(func, "scaled")
        again, *_ = relax.utils.gen_call_tir_inputs(_scaled, x, 2.0)
        assert bb.add_func(again, "scaled").same_as(gv)
        bb.emit_func_output(x)
    prim = bb.get()["scaled"]
    assert "global_symbol" not in prim.attrs and prim.attrs["tir.noalias"]
    assert prim.buffer_map[prim.params[0]].name == "x"
    shape = prim.buffer_map[prim.params[0]].shape
    assert not shape[0].same_as(n) and shape[0].dtype == "int64"


def test_tensor_expressions_get_symbolic_variables_that_no_shape_shows():
    n, k = tir.Var("n", "int64"), tir.Var("k", "int64")
    x = relax.Var("x", TensorStructInfo([n + 1], "float32"))

    def shifted(a, by):
        return te.compute(a.shape, lambda i: a[i] + tir.Cast("float32", by), name="shifted")

    func, _, out, tir_vars = relax.utils.gen_call_tir_inputs(shifted, x, k * 2)
    assert out == x.struct_info
    assert [v.name for v in tir_vars.values] == ["n", "k"]
    assert len(func.params) == 4 and func.params[3].dtype == "int64"
    s = relax.Var("s", PrimStructInfo("float32"))

    def plus(a, b):
        return te.compute(a.shape, lambda i: a[i] + b, name="plus")

    func, args, _, _ = relax.utils.gen_call_tir_inputs(plus, relax.const([1.0, 2.0]), s)
    assert len(args.fields) == 2 and func.params[1].dtype == "float32"
    unknown = relax.Var("u", TensorStructInfo(dtype="float32", ndim=1))
    with pytest.raises(ValueError, match="expected a tensor of known shape"):
        relax.utils.gen_call_tir_inputs(plus, unknown, s)


def test_finalize_gives_public_functions_their_names():
    x = relax.Var("x", F32)
    public = relax.Function([x], x, attrs={"global_symbol": "f"})
    private = relax.Function([x], x)
    bb = relax.BlockBuilder(ir.IRModule({"f": private, "g": public}))
    mod = bb.finalize()
    assert sorted(v.name_hint for v in mod.get_global_vars()) == ["f", "f1"]
    assert "global_symbol" in mod["f"].attrs and "global_symbol" not in mod["f1"].attrs


def test_names_that_numbers_make_are_taken():
    bb = relax.BlockBuilder()
    x = relax.Var("x", F32)
    with bb.function("main", [x]):
        hints = ["", "", "", "lv", "lv1", "gv2", "gv2", "gv", "gv01", "gv1", "gv21", "gv2"]
        names = [bb.emit(relax.Call(FLAT, [x]), name_hint=hint).name_hint for hint in hints]
        bb.emit_func_output(x)
    assert names[:3] == ["gv", "gv1", "gv2"]
    assert names[3:] == ["lv", "lv1", "gv21", "gv22", "gv3", "gv01", "gv11", "gv211", "gv23"]
    assert len(set(names)) == len(names)


def test_unique_names_see_bindings_that_were_there():
    bb = relax.BlockBuilder()
    x, given = relax.Var("x", F32), relax.Var("gv", F32)
    with bb.function("main", [x]):
        bb.emit_normalized(relax.VarBinding(given, relax.Call(FLAT, [x])))
        assert bb.lookup_binding(given).op.same_as(FLAT)
        later = bb.emit(relax.Call(FLAT, [given]))
        assert later.name_hint == "gv1"
        assert bb.lookup_binding(later).args[0].same_as(given)
        bb.emit_func_output(later)


def test_the_module_it_began_with_stays():
    bb = relax.BlockBuilder()
    x = relax.Var("x", F32)
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.Call(FLAT, [x])))
    first = bb.get()
    more = relax.BlockBuilder(first)
    added = more.add_func(relax.Function([x], x, F32), "other")
    again = more.add_func(relax.Function([given := relax.Var("y", F32)], given, F32), "other")
    assert added.same_as(again)
    more.update_func(added, first["main"].without_attr("global_symbol"))
    assert more.add_func(relax.Function([x], x, F32), "other").name_hint == "other1"
    assert [v.name_hint for v in first.get_global_vars()] == ["main"]
    assert [v.name_hint for v in more.get().get_global_vars()] == ["main", "other", "other1"]
    first["late"] = relax.Function([x], x, F32)
    assert [v.name_hint for v in more.get().get_global_vars()] == ["main", "other", "other1"]
