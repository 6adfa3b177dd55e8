# SPDX-License-Identifier: Apache-2.0
"""Bindings and functions that nobody uses go."""

import pytest
from tvm import ir, relax, tir
from tvm.relax import TensorStructInfo as T
from tvm.relax import transform

from tests.relax.transform.bindings import EFFECT, F32, build, f, g, same


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


def test_functions_that_only_kernels_and_scalars_name_stay():
    n = tir.Var("n", "int64")
    inner, scalar, kernel, gone = (
        ir.GlobalVar(name) for name in ("inner", "scalar", "kernel", "gone")
    )

    def prim(*calls):
        evaluated = [tir.Evaluate(tir.Call("int32", c, [])) for c in calls]
        return tir.PrimFunc([], tir.SeqStmt(evaluated) if calls else tir.Evaluate(0))

    x = relax.Var("x", relax.ShapeStructInfo([n]))
    main = relax.Function(
        [x],
        relax.SeqExpr([], relax.PrimValue(tir.Call("int64", scalar, [n]))),
        relax.PrimStructInfo("int64"),
    ).with_attr("global_symbol", "main")
    mod = ir.IRModule({
        ir.GlobalVar("main"): main, scalar: prim(kernel, inner), kernel: prim(), inner: prim(),
        gone: prim(),
    })  # fmt: skip
    after = transform.DeadCodeElimination()(mod)
    assert [v.name_hint for v in after.get_global_vars()] == ["inner", "kernel", "main", "scalar"]
