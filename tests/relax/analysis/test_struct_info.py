# SPDX-License-Identifier: Apache-2.0
"""Struct info compared, joined, erased; symbolic variables; what calls return."""

import pytest
from tvm import ir, relax, tir
from tvm.relax import FuncStructInfo, PrimStructInfo, ShapeStructInfo, TupleStructInfo
from tvm.relax import ObjectStructInfo as Obj
from tvm.relax import TensorStructInfo as T
from tvm.relax.analysis import BaseCheckResult as R
from tvm.relax.analysis import struct_info_base_check as check
from tvm.relax.analysis import struct_info_lca as lca

n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
CPU, GPU = ir.VDevice("llvm"), ir.VDevice("cuda")


@pytest.mark.parametrize(
    "base, derived, expected",
    [
        (Obj(), T([2], "float32"), R.PASS),
        (T([2], "float32"), Obj(), R.FAIL_L1),
        (T([2], "float32"), ShapeStructInfo([2]), R.FAIL_L0),
        (PrimStructInfo("int64"), PrimStructInfo("int32"), R.FAIL_L0),
        (PrimStructInfo("int64"), PrimStructInfo(value=n), R.PASS),
        (PrimStructInfo(value=n), PrimStructInfo("int64"), R.FAIL_L2),
        (PrimStructInfo(value=n), PrimStructInfo(value=n), R.PASS),
        (ShapeStructInfo(), ShapeStructInfo([1, 2]), R.PASS),
        (ShapeStructInfo(ndim=2), ShapeStructInfo(), R.FAIL_L1),
        (ShapeStructInfo(ndim=2), ShapeStructInfo(ndim=3), R.FAIL_L0),
        (ShapeStructInfo([1, n]), ShapeStructInfo(ndim=2), R.FAIL_L2),
        (ShapeStructInfo([1, n]), ShapeStructInfo([1, m]), R.FAIL_L2),
        (ShapeStructInfo([1, n]), ShapeStructInfo([2, n]), R.FAIL_L0),
        (ShapeStructInfo([n + n]), ShapeStructInfo([2 * n]), R.PASS),
        (T(dtype="float32", ndim=2), T([n, m], "float32"), R.PASS),
        (T(dtype=None), T([n, m], "float32"), R.PASS),
        (T([n, m], "float32"), T([n, m], None), R.FAIL_L1),
        (T([n, m], "float32"), T([n, m], "float16"), R.FAIL_L0),
        (T([n, m], "float32"), T(dtype="float32", ndim=2), R.FAIL_L2),
        (T([n, m], "float32"), T(dtype="float32"), R.FAIL_L1),
        (T([2], "float32", CPU), T([2], "float32"), R.FAIL_L1),
        (T([2], "float32", CPU), T([2], "float32", GPU), R.FAIL_L0),
        (T([2], "float32"), T([2], "float32", GPU), R.PASS),
        (TupleStructInfo([Obj(), T([2])]), TupleStructInfo([T([1]), T([n])]), R.FAIL_L2),
        (TupleStructInfo([Obj()]), TupleStructInfo([]), R.FAIL_L0),
        (FuncStructInfo([T([n])], T([n])), FuncStructInfo([T([m])], T([m])), R.PASS),
        (FuncStructInfo([T([2])], Obj()), FuncStructInfo([T(ndim=1)], T([2])), R.PASS),
        (FuncStructInfo([T(ndim=1)], Obj()), FuncStructInfo([T([2])], Obj()), R.FAIL_L2),
        (FuncStructInfo([], Obj()), FuncStructInfo([], Obj(), purity=False), R.FAIL_L0),
        (FuncStructInfo([], Obj()), FuncStructInfo([Obj()], Obj()), R.FAIL_L0),
        (FuncStructInfo.opaque_func(ret=Obj()), FuncStructInfo([], T([1])), R.PASS),
        (FuncStructInfo([], Obj()), FuncStructInfo.opaque_func(purity=True), R.FAIL_L2),
    ],
)
def test_base_check(base, derived, expected):
    assert check(base, derived) == expected
    assert base.is_base_of(derived) == (expected == R.PASS)
    assert check(base, base) == check(derived, derived) == R.PASS


@pytest.mark.parametrize(
    "a, b, expected",
    [
        (Obj(), T([2]), Obj()),
        (T([2]), ShapeStructInfo([2]), Obj()),
        (T([n, 2]), T([n, 2]), T([n, 2])),
        (T([n, 2]), T([n, 3]), T(ndim=2)),
        (T([n, 2]), T([n, 2], "float16"), T([n, 2], None)),
        (T([2]), T([2, 2]), T()),
        (T([2], "float32", CPU), T([2], "float32"), T([2])),
        (PrimStructInfo(value=n), PrimStructInfo(value=m), PrimStructInfo("int64")),
        (PrimStructInfo("int64"), PrimStructInfo("int32"), Obj()),
        (ShapeStructInfo([n]), ShapeStructInfo([m]), ShapeStructInfo(ndim=1)),
        (ShapeStructInfo([n]), ShapeStructInfo([n, n]), ShapeStructInfo()),
        (
            TupleStructInfo([T([2]), Obj()]),
            TupleStructInfo([T([3]), T()]),
            TupleStructInfo([T(ndim=1), Obj()]),
        ),
        (TupleStructInfo([]), TupleStructInfo([Obj()]), Obj()),
        (
            FuncStructInfo([T([2])], T([2])),
            FuncStructInfo([T([2])], T([3]), purity=False),
            FuncStructInfo([T([2])], T(ndim=1), purity=False),
        ),
    ],
)
def test_least_common_base(a, b, expected):
    for joined in (lca(a, b), lca(b, a)):
        assert joined == expected
        assert joined.is_base_of(a) and joined.is_base_of(b)


def test_erasure():
    erase = relax.analysis.erase_to_well_defined
    assert erase(T([n, m])) == T(ndim=2)
    assert erase(T([n, m]), {n: n, m: tir.IntImm("int64", 4)}) == T([n, 4])
    assert erase(T([n, m + 1]), {n: n}) == T(ndim=2)
    assert erase(ShapeStructInfo([n])) == ShapeStructInfo(ndim=1)
    assert erase(PrimStructInfo(value=n)) == PrimStructInfo("int64")
    func = FuncStructInfo([T([n])], T([n]))
    assert erase(TupleStructInfo([T([2]), func])) == TupleStructInfo([T([2]), func])
    s = relax.Var("s", ShapeStructInfo(ndim=2))
    assert erase(T(s)) == T(ndim=2)
    assert erase(T(s), None, {s: relax.ShapeExpr([1, 2])}) == T([1, 2])


def test_symbolic_variables():
    info = TupleStructInfo([T([n, m + n]), FuncStructInfo([T([m])], T([m]))])
    assert [v.name for v in relax.analysis.tir_vars_in_struct_info(info)] == ["n", "m"]
    assert [v.name for v in relax.analysis.definable_tir_vars_in_struct_info(info)] == ["n"]
    assert len(relax.analysis.collect_non_negative_expressions(info)) == 2
    x = relax.Var("x", T([n, m]))
    f = relax.Function([x], relax.ShapeExpr([n, m]))
    assert [v.name for v in relax.analysis.defined_symbolic_vars(f)] == ["n", "m"]
    assert list(relax.analysis.free_symbolic_vars(f)) == []
    g = relax.Function([], relax.ShapeExpr([n + m]))
    assert [v.name for v in relax.analysis.free_symbolic_vars(g)] == ["n", "m"]


def test_static_types():
    static = relax.analysis.get_static_type
    assert static(T([n, 2])) == relax.TensorType(2, "float32")
    assert static(ShapeStructInfo([n])) == relax.ShapeType(1)
    assert static(TupleStructInfo([Obj()])) == relax.TupleType([relax.ObjectType()])
    assert static(FuncStructInfo.opaque_func()) == relax.PackedFuncType()
    assert static(FuncStructInfo([Obj()], PrimStructInfo("bool"))) == relax.FuncType(
        [relax.ObjectType()], ir.PrimType("bool")
    )


def test_what_a_call_returns():
    bb = relax.BlockBuilder()
    func = FuncStructInfo([T([n]), T([n, m])], T([n, m * 2]))
    f = relax.Var("f", func)
    x, y = relax.Var("x", T([4])), relax.Var("y", T([4, 8]))
    derive = relax.analysis.derive_call_ret_struct_info
    assert derive(func, relax.Call(f, [x, y]), bb) == T([4, 16])
    unknown = relax.Var("u", T(ndim=2))
    assert derive(func, relax.Call(f, [x, unknown]), bb) == T(ndim=2)
    with pytest.raises(ValueError, match="expected argument 0 to be"):
        derive(func, relax.Call(f, [y, y]), bb)
    with pytest.raises(ValueError, match="a match_cast could check it"):
        derive(func, relax.Call(f, [relax.Var("o", Obj()), y]), bb)


def test_deep_struct_info():
    info = T([2])
    for _ in range(10000):
        info = TupleStructInfo([info])
    assert check(info, info) == R.PASS and lca(info, info) == info
    other = T([3])
    for _ in range(10000):
        other = TupleStructInfo([other])
    assert check(info, other) == R.FAIL_L0
    assert relax.analysis.erase_to_well_defined(info) == info
