# SPDX-License-Identifier: Apache-2.0
"""Passes over bindings: the smallest program before, the whole program after."""

import pytest
from tvm import ir, relax, tir
from tvm.relax import TensorStructInfo as T
from tvm.relax import transform

F32 = T([2, 3], "float32")


def _op(name, pure=True):
    if name not in ir.Op.list_op_names():
        ir.register_op_attr(name, "FInferStructInfo", lambda call, _: call.args[0].struct_info)
        ir.register_op_attr(name, "FPurity", pure)
    return ir.Op.get(name)


F, G, EFFECT = _op("test.pass.f"), _op("test.pass.g"), _op("test.pass.effect", False)


def f(*args):
    return relax.Call(F, list(args))


def g(*args):
    return relax.Call(G, list(args))


def build(body, pure=True, params=None):
    """A module whose function main is what `body(builder, x)` emits."""
    bb = relax.BlockBuilder()
    params = params or [relax.Var("x", F32)]
    with bb.function("main", params, pure=pure):
        bb.emit_func_output(body(bb, *params))
    return bb.get()


def same(after, expected):
    ir.assert_structural_equal(after["main"], expected["main"])
    assert relax.analysis.well_formed(after)


def flow(emit):
    """A body with one dataflow block."""

    def body(bb, *params):
        with bb.dataflow():
            result = emit(bb, *params)
        return result

    return body


def test_normalize():
    x = relax.Var("x", F32)
    raw = relax.Function([x], f(g(x), g(x)), F32, attrs={"global_symbol": "main"})
    after = transform.Normalize()(ir.IRModule({"main": raw}))

    def expected(bb, x):
        a, b = bb.emit(g(x)), bb.emit(g(x))
        return bb.emit(f(a, b))

    same(after, build(expected))
    assert transform.Normalize()(after).same_as(after)
    info = transform.Normalize().info
    assert (info.name, info.opt_level) == ("Normalize", 1)


def test_to_non_dataflow():
    before = build(flow(lambda bb, x: bb.emit_output(f(bb.emit(g(x))))))
    after = transform.ToNonDataflow()(before)
    same(after, build(lambda bb, x: bb.emit(f(bb.emit(g(x))))))


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


def test_dead_code_elimination_of_bindings():
    def before(bb, x):
        with bb.dataflow():
            bb.emit(f(bb.emit(g(x))))
            y = bb.emit_output(f(x))
        bb.emit(relax.Call(EFFECT, [x]))
        bb.emit(g(y))
        return y

    def expected(bb, x):
        with bb.dataflow():
            y = bb.emit_output(f(x))
        bb.emit(relax.Call(EFFECT, [x]))
        return y

    after = transform.DeadCodeElimination()(build(before, pure=False))
    same(after, build(expected, pure=False))
    once = relax.analysis.remove_all_unused(build(before, pure=False)["main"])
    ir.assert_structural_equal(once, after["main"])


def test_dead_code_elimination_keeps_casts_that_define():
    n = tir.Var("n", "int64")

    def body(bb, x):
        bb.match_cast(x, T([n], "float32"))
        return bb.emit(relax.ShapeExpr([n]))

    mod = build(body, params=[relax.Var("x", T(dtype="float32", ndim=1))])
    same(transform.DeadCodeElimination()(mod), mod)


def test_dead_code_elimination_of_functions():
    bb = relax.BlockBuilder()
    for name in ("used", "unused"):
        p = relax.Var("p", F32)
        with bb.function(name, [p], private=True):
            bb.emit_func_output(bb.emit(f(p) if name == "used" else g(p)))
    x = relax.Var("x", F32)
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.Call(bb.get().get_global_var("used"), [x])))
    mod = bb.get()
    names = lambda m: [v.name_hint for v in m.get_global_vars()]
    assert names(transform.DeadCodeElimination()(mod)) == ["main", "used"]
    assert names(transform.DeadCodeElimination(["unused"])(mod)) == ["unused"]
    with pytest.raises(ValueError, match="got 'nobody'"):
        transform.DeadCodeElimination(["nobody"])(mod)


def test_canonicalize_names():
    def before(bb, x):
        y = bb.emit(x)
        with bb.dataflow():
            a = bb.emit(f(y))
            b = bb.emit(a)
            c = bb.emit_output(g(b))
            d = bb.emit_output(b)
        return bb.emit(f(c, d))

    def expected(bb, x):
        with bb.dataflow():
            a = bb.emit(f(x))
            c = bb.emit_output(g(a))
            d = bb.emit_output(a)
        return bb.emit(f(c, d))

    def better(bb, x):
        with bb.dataflow():
            d = bb.emit_output(f(x))
            c = bb.emit_output(g(d))
        return bb.emit(f(c, d))

    after = transform.CanonicalizeBindings()(build(before))
    same(transform.CanonicalizeBindings()(after), build(better))
    same(transform.CanonicalizeBindings()(build(expected)), build(better))


def test_canonicalize_tuples_and_casts():
    def before(bb, x):
        t = bb.emit(relax.Tuple([x, f(x)]))
        a, b = bb.emit(t[0]), bb.emit(t[1])
        c = bb.match_cast(b, T(dtype="float32", ndim=2))
        return bb.emit(relax.Tuple([a, c]))

    def expected(bb, x):
        y = bb.emit(f(x))
        t = bb.emit(relax.Tuple([x, y]))
        return bb.emit(relax.Tuple([x, y])) if t is None else bb.emit(relax.Tuple([x, y]))

    same(transform.CanonicalizeBindings()(build(before)), build(expected))

    def whole(bb, p):
        return bb.emit(relax.Tuple([bb.emit(p[0]), bb.emit(p[1])]))

    pair = relax.TupleStructInfo([F32, F32])
    mod = build(whole, params=[relax.Var("p", pair)])
    after = transform.DeadCodeElimination()(transform.CanonicalizeBindings()(mod))
    same(after, build(lambda bb, p: p, params=[relax.Var("p", pair)]))


def test_canonicalize_symbolic_variables():
    def before(bb, x):
        n = tir.Var("n", "int64")
        y = bb.match_cast(x, T([n, 3], "float32"))
        return bb.emit(relax.Tuple([y, relax.ShapeExpr([n * 2])]))

    def expected(bb, x):
        return bb.emit(relax.Tuple([x, relax.ShapeExpr([4])]))

    after = transform.CanonicalizeBindings()(build(before))
    assert after["main"].ret_struct_info.fields[0] == F32

    def contradiction(bb, x):
        n = tir.Var("n", "int64")
        bb.match_cast(x, T([n, 3], "float32"))
        y = bb.match_cast(x, T([2, n], "float32"))
        return y

    with pytest.raises(ValueError, match="MatchCast statements must be consistent"):
        transform.CanonicalizeBindings()(build(contradiction))


def test_eliminate_common_subexpr():
    def before(bb, x):
        with bb.dataflow():
            a, b = bb.emit(f(x)), bb.emit(f(x))
            c = bb.emit_output(g(a, b))
            d = bb.emit_output(f(x))
        return bb.emit(relax.Tuple([c, d]))

    def expected(bb, x):
        with bb.dataflow():
            a = bb.emit(f(x))
            c = bb.emit_output(g(a, a))
            d = bb.emit_output(a)
        return bb.emit(relax.Tuple([c, d]))

    same(transform.EliminateCommonSubexpr()(build(before)), build(expected))

    def effects(bb, x):
        bb.emit(relax.Call(EFFECT, [x]))
        bb.emit(relax.Call(EFFECT, [x]))
        return x

    mod = build(effects, pure=False)
    same(transform.EliminateCommonSubexpr()(mod), mod)


def test_values_that_are_overwritten_are_not_shared():
    """c is overwritten: were it a, so would be a, which is used afterwards."""

    def body(bb, x):
        a, c = bb.emit(f(x)), bb.emit(f(x))
        double = relax.op.call_inplace_packed(
            "test.pass.double", c, inplace_indices=[0], sinfo_args=[F32]
        )
        d = bb.emit(double)
        return bb.emit(relax.Tuple([a, d]))

    mod = build(body, pure=False)
    same(transform.EliminateCommonSubexpr()(mod), mod)


def test_subexpressions_of_a_branch_are_not_seen_behind_it():
    c = relax.Var("c", relax.PrimStructInfo("bool"))

    def body(bb, x, c):
        y = bb.emit(relax.If(c, f(x), x))
        return bb.emit(relax.Tuple([y, bb.emit(f(x))]))

    mod = build(body, params=[relax.Var("x", F32), c])
    same(transform.EliminateCommonSubexpr()(mod), mod)


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
