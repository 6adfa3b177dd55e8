# SPDX-License-Identifier: Apache-2.0
"""Programs that break a rule, and what is said of them."""

import pytest
import tvm
import tvm_ffi
from tvm import ir, relax, tir
from tvm.relax import TensorStructInfo as T

F32 = T([2, 3], "float32")
n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
_find = tvm_ffi.get_global_func("relax.analysis._find_ill_formed")


def _op(name, pure):
    if name not in ir.Op.list_op_names():
        ir.register_op_attr(name, "FInferStructInfo", lambda call, _: call.args[0].struct_info)
        ir.register_op_attr(name, "FPurity", pure)
    return ir.Op.get(name)


PURE, IMPURE = _op("test.well_formed.pure", True), _op("test.well_formed.impure", False)


def _known(expr, info=F32):
    relax.UpdateStructInfo(expr, info)
    return expr


def call(*args, op=PURE):
    return _known(relax.Call(op, list(args)))


def func(params, bindings, body, flow=False, **kwargs):
    block = (relax.DataflowBlock if flow else relax.BindingBlock)(bindings)
    seq = _known(relax.SeqExpr([block], body), body.struct_info)
    return relax.Function(params, seq, **kwargs)


def bind(name, value, info=F32, flow=False):
    var = (relax.DataflowVar if flow else relax.Var)(name, info)
    return var, relax.VarBinding(var, value)


def expect(program, message, check_struct_info=True):
    assert not relax.analysis.well_formed(program, check_struct_info)
    assert message in str(_find(program, check_struct_info, True))


def x():
    return relax.Var("x", F32)


def test_a_program_in_order():
    p = x()
    a, first = bind("a", call(p), flow=True)
    b, second = bind("b", call(a))
    f = func([p], [first, second], b, flow=True)
    assert str(_find(f, True, True)) == "" and relax.analysis.well_formed(f)


def test_variables():
    p = x()
    a, first = bind("a", call(p))
    b, second = bind("b", call(a))
    expect(func([p], [second, first], b), "got 'a' before its definition")
    expect(func([p], [first, first], a), "expected each variable to be defined once, got 'a' twice")
    lv, flow = bind("lv", call(p), flow=True)
    expect(func([p], [flow], lv, flow=True), "got 'lv' outside of its dataflow block")
    expect(func([p], [flow], lv), "expected dataflow variables in dataflow blocks only")
    c = relax.Var("c", relax.PrimStructInfo("bool"))
    inner = _known(relax.SeqExpr([relax.BindingBlock([first])], a))
    branch = _known(relax.If(c, inner, _known(relax.SeqExpr([], p))))
    y, third = bind("y", branch)
    expect(func([p, c], [third], a), "got 'a' outside of the branch that defines it")
    mod = ir.IRModule({"f": func([p], [], p), "g": func([p], [], p)})
    expect(mod, "got 'x' twice")


def test_normal_form():
    p = x()
    a, nested = bind("a", call(call(p)))
    expect(func([p], [nested], a), "where an argument is a variable or a constant")
    expect(func([p], [], call(p)), "where the body of a sequence is")
    b, seq = bind("b", _known(relax.SeqExpr([], p)))
    expect(func([p], [seq], b), "where sequences are bodies and branches, got one bound to 'b'")
    missing = relax.Call(PURE, [p])
    c, bare = bind("c", missing)
    expect(func([p], [bare], c), "expected struct info of every expression, got none")


def test_purity():
    p = x()
    a, effect = bind("a", call(p, op=IMPURE))
    expect(func([p], [effect], a), "expected no call with side effects in a pure function")
    assert relax.analysis.well_formed(func([p], [effect], a, is_pure=False))
    assert relax.analysis.well_formed(func([p], [effect], a, attrs={"relax.force_pure": True}))
    expect(
        func([p], [effect], a, is_pure=False, attrs={"relax.force_pure": True}),
        "expected a function with relax.force_pure to be pure",
    )
    expect(func([p], [effect], a, flow=True, is_pure=False), "side effects in a dataflow block")
    c = relax.Var("c", relax.PrimStructInfo("bool"))
    branch = _known(relax.If(c, _known(relax.SeqExpr([], p)), _known(relax.SeqExpr([], p))))
    y, control = bind("y", branch)
    expect(func([p, c], [control], y, flow=True), "expected no control flow in a dataflow block")


def test_symbolic_variables():
    p = relax.Var("p", T([n], "float32"))
    other = relax.Var("q", T([n], "float32"))
    shape = relax.ShapeExpr([m])
    s, use = bind("s", shape, shape.struct_info)
    expect(func([p], [use], p), "before they are used, got 'm'")
    cast = relax.MatchCast(relax.Var("y", T([m], "float32")), p, T([m], "float32"))
    assert relax.analysis.well_formed(func([p], [cast, use], p))
    mod = ir.IRModule({"f": func([p], [], p), "g": func([other], [], other)})
    expect(mod, "expected symbolic variables of its own, got 'n', which 'f' defines")
    expect(func([relax.Var("z", T([n + 1], "float32"))], [], shape), "got 'n'")


def test_modules():
    p = x()
    gv = ir.GlobalVar("nobody")
    relax.UpdateStructInfo(gv, relax.FuncStructInfo([F32], F32))
    a, unknown = bind("a", _known(relax.Call(gv, [p])))
    expect(ir.IRModule({"f": func([p], [unknown], a)}), "expected a function of the module, got")
    named = func([p], [], p, attrs={"global_symbol": "g"})
    expect(ir.IRModule({"f": named}), "expected the attribute global_symbol to be the function's")


def test_struct_info_that_contradicts():
    p = x()
    wrong = T([2, 3], "float16")
    a, bad = bind("a", _known(relax.Call(PURE, [p]), wrong), wrong)
    expect(func([p], [bad], a), "what is recorded of a call to agree with what is inferred")
    assert relax.analysis.well_formed(func([p], [bad], a), check_struct_info=False)
    b, other = bind("b", p, wrong)
    expect(func([p], [other], b), "expected a variable to be what its value is")


def test_validation_by_operators():
    name = "test.well_formed.valid"
    op = _op(name, True)
    if not op.has_attr("FValidate"):

        def validate(call):
            if len(call.args) != 1:
                raise ValueError("expected 1 argument")

        ir.register_op_attr(name, "FValidate", validate)
    p = x()
    a, good = bind("a", call(p, op=op))
    assert relax.analysis.well_formed(func([p], [good], a))
    b, bad = bind("b", call(p, p, op=op))
    expect(func([p], [bad], b), "expected a valid call, got ValueError: expected 1 argument")


def test_no_primfunc_inside():
    prim = tir.PrimFunc([], tir.Evaluate(0))
    info = relax.ObjectStructInfo()
    f = relax.Function([], _known(relax.SeqExpr([], prim), info), info)
    expect(f, "expected PrimFuncs to be functions of the module")


def test_wrong_objects():
    with pytest.raises(TypeError):
        relax.analysis.well_formed(3)


def test_sizes_are_not_negative():
    """What a pass may simplify of a shape, as sizes are not negative, is still well formed."""
    found = tvm.script.from_source("""
from tvm.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def doubled(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,))
        for i in range(n):
            with T.block("A"):
                vi = T.axis.spatial(n, i)
                A[vi] = A[vi] * T.float32(2)
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = Module
        with R.dataflow():
            lv = R.sin(R.strided_slice(x, (0,), (0,), (1,), assume_inbound=False))
            out = R.call_tir_inplace(cls.doubled, (lv,), inplace_indices=[0],
                                     out_sinfo=R.Tensor((T.max(T.min(1, n), 0),), "float32"))
            R.output(out)
        return out
""")
    assert relax.analysis.well_formed(relax.transform.LegalizeOps()(found))
