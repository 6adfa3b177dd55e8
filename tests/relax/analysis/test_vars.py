# SPDX-License-Identifier: Apache-2.0
"""Variables, bindings, purity, recursion, weights, reshapes."""

import pytest
from tvm import ir, relax, te
from tvm.relax import TensorStructInfo as T
from tvm.relax import analysis

F32 = T([2, 3], "float32")


def _op(name, pure):
    if name not in ir.Op.list_op_names():
        ir.register_op_attr(name, "FInferStructInfo", lambda call, _: call.args[0].struct_info)
        ir.register_op_attr(name, "FPurity", pure)
    return ir.Op.get(name)


F, EFFECT = _op("test.analysis.f", True), _op("test.analysis.effect", False)


def f(*args):
    return relax.Call(F, list(args))


def _names(items):
    return [v.name_hint for v in items]


def _program():
    bb = relax.BlockBuilder()
    x, y = relax.Var("x", F32), relax.Var("y", F32)
    with bb.function("main", [x, y]):
        with bb.dataflow():
            a = bb.emit(f(x, x), "a")
            b = bb.emit(f(a, y), "b")
            out = bb.emit_output(f(b, a), "out")
        bb.emit_func_output(out)
    return bb.get()


def test_variables():
    func = _program()["main"]
    assert _names(analysis.bound_vars(func)) == ["x", "y", "a", "b", "out"]
    assert _names(analysis.used_vars(func)) == ["x", "a", "y", "b", "out"]
    assert _names(analysis.all_vars(func)) == ["x", "y", "a", "b", "out"]
    assert _names(analysis.free_vars(func)) == []
    assert _names(analysis.free_vars(func.body)) == ["x", "y"]


def test_values():
    func = _program()["main"]
    block = func.body.blocks[0]
    values = analysis.get_var2val(func)
    a, b, out = [binding.var for binding in block.bindings]
    assert values[b].same_as(block.bindings[1].value)
    users = analysis.udchain(block)
    assert _names(users[a]) == ["b", "out"] and _names(users[out]) == []
    assert _names(users[func.params[0]]) == ["a"]
    assert list(analysis.name_to_binding(func)["a"])[0].same_as(block.bindings[0])


def test_order_of_visits():
    order = []
    analysis.post_order_visit(_program()["main"], lambda e: order.append(type(e).__name__))
    assert order[-2:] == ["SeqExpr", "Function"] and order.count("Call") == 3


def test_purity():
    x = relax.Var("x", F32)
    assert not analysis.contains_impure_call(f(x))
    assert analysis.contains_impure_call(f(relax.Call(EFFECT, [x])))
    assert analysis.contains_impure_call(relax.Call(relax.ExternFunc("p"), [x]))
    own = ir.GlobalVar("own")
    relax.UpdateStructInfo(own, relax.FuncStructInfo([F32], F32, purity=False))
    call = relax.Call(own, [x])
    assert analysis.contains_impure_call(call)
    assert not analysis.contains_impure_call(call, own)
    inner = relax.Function([x], relax.SeqExpr([], relax.Call(EFFECT, [x])), F32, is_pure=False)
    body = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(relax.Var("g"), inner)])], x)
    assert not analysis.contains_impure_call(body)


def test_recursion():
    names = {n: ir.GlobalVar(n) for n in "abcde"}
    for var in names.values():
        relax.UpdateStructInfo(var, relax.FuncStructInfo([F32], F32))

    def calls(*callees):
        x = relax.Var("x", F32)
        items = [relax.Call(names[c], [x]) for c in callees]
        return relax.Function([x], relax.SeqExpr([], relax.Tuple(items)), relax.ObjectStructInfo())

    graph = {"a": "b", "b": "ac", "c": "c", "d": "e", "e": ""}
    mod = ir.IRModule({names[n]: calls(*callees) for n, callees in graph.items()})
    assert [_names(group) for group in analysis.detect_recursion(mod)] == [["a", "b"], ["c"]]


def test_long_chains_of_calls():
    count = 5000
    names = [ir.GlobalVar(f"f{i}") for i in range(count)]
    for var in names:
        relax.UpdateStructInfo(var, relax.FuncStructInfo([F32], F32))
    functions = {}
    for i, var in enumerate(names):
        x = relax.Var("x", F32)
        body = relax.Call(names[(i + 1) % count], [x])
        functions[var] = relax.Function([x], relax.SeqExpr([], body), F32)
    (group,) = analysis.detect_recursion(ir.IRModule(functions))
    assert len(group) == count


def test_what_weights_alone_decide():
    bb = relax.BlockBuilder()
    x, w, v = (relax.Var(n, F32) for n in "xwv")
    with bb.function("main", [x, w, v], attrs={"num_input": 1}):
        with bb.dataflow():
            a = bb.emit(f(w, v), "a")
            b = bb.emit(f(a, x), "b")
            c = bb.emit_output(f(a, a), "c")
            d = bb.emit_output(f(b, c), "d")
        bb.emit_func_output(d)
    func = bb.get()["main"]
    assert _names(analysis.computable_at_compile_time(func)) == ["w", "v", "a", "c"]
    with pytest.raises(ValueError, match="attribute num_input"):
        analysis.computable_at_compile_time(func.without_attr("num_input"))


def test_reshapes():
    def prim(shape, index):
        A = te.placeholder((4, 6), "float32", name="A")
        return te.create_prim_func([A, te.compute(shape, lambda *i: A(*index(*i)), name="B")])

    def flat(n):
        return n // 6, n % 6

    assert analysis.has_reshape_pattern(prim((24,), flat))
    assert analysis.has_reshape_pattern(prim((2, 12), lambda i, j: flat(i * 12 + j)))
    assert not analysis.has_reshape_pattern(prim((6, 4), lambda i, j: (j, i)))
    assert not analysis.has_reshape_pattern(prim((12,), flat))


def test_memory_usage():
    text = analysis.estimate_memory_usage(_program())
    assert "Function main" in text and "there are 0 constant-size" in text
