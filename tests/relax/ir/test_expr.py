# SPDX-License-Identifier: Apache-2.0
"""Nodes of the graph language: construction, invariants, equality, JSON."""

import ml_dtypes
import numpy as np
import pytest
from tvm import ir, relax, tir
from tvm.relax import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)

F32 = TensorStructInfo([2, 3], "float32")


def _round_trip(node):
    again = ir.load_json(ir.save_json(node))
    ir.assert_structural_equal(again, node, map_free_vars=True)
    return again


def test_tuples_and_their_items():
    x, y = relax.Var("x", F32), relax.Var("y", PrimStructInfo("int64"))
    t = relax.Tuple([x, y])
    assert t.struct_info == TupleStructInfo([F32, PrimStructInfo("int64")])
    assert t[1].same_as(y) and len(t) == 2
    assert relax.TupleGetItem(t, 0).struct_info == F32
    assert relax.Tuple([]).struct_info == TupleStructInfo([])
    for index in (-1, 2):
        with pytest.raises(IndexError, match="Index out of bounds"):
            relax.TupleGetItem(t, index)
    with pytest.raises(IndexError, match="Tuple index out of range"):
        t[2]
    a, b = relax.Var("t", t.struct_info)
    assert (a.index, b.index) == (0, 1)
    with pytest.raises(TypeError, match="expected a tuple"):
        x[0]


def test_shapes():
    n = tir.Var("n", "int64")
    shape = relax.ShapeExpr([n, 4, tir.IntImm("int32", 5)])
    assert [v.dtype for v in shape.values] == ["int64"] * 3
    assert shape.struct_info == ShapeStructInfo([n, 4, 5]) and shape.struct_info.ndim == 3
    assert shape[1] == 4 and len(shape) == 3
    with pytest.raises(IndexError, match="ShapeExpr index out of range"):
        shape[3]
    with pytest.raises(TypeError, match="expected dimensions of type int64, got m of type int32"):
        relax.ShapeExpr([tir.Var("m", "int32")])
    with pytest.raises(ValueError, match="expected a list or a tuple"):
        relax.expr.make_shape(3)


def test_constants():
    assert relax.const(1).struct_info == TensorStructInfo([], "int32")
    assert relax.const(1.5).struct_info == TensorStructInfo([], "float32")
    assert relax.const(True).struct_info == TensorStructInfo([], "bool")
    assert relax.const(np.zeros((2, 3))).struct_info == TensorStructInfo([2, 3], "float64")
    assert relax.const([1, 2]).struct_info == TensorStructInfo([2], "int32")
    half = relax.const(np.ones(2), "bfloat16")
    np.testing.assert_array_equal(half.data.numpy().astype(ml_dtypes.bfloat16), [1, 1])
    c = relax.const(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(_round_trip(c).data.numpy(), c.data.numpy())
    assert not ir.structural_equal(relax.const(1), relax.const(2))


def test_scalars_texts_and_types():
    assert relax.PrimValue(3).value.dtype == "int64"
    assert relax.PrimValue(3.5).value.dtype == "float64"
    assert relax.PrimValue(3).struct_info == PrimStructInfo(value=3)
    assert relax.StringImm("a").struct_info == ObjectStructInfo()
    assert relax.DataTypeImm("float16").value == "float16"
    assert relax.convert_to_expr("a").value == "a"
    assert relax.convert_to_expr((1, [2, "b"]))[1][1].value == "b"
    with pytest.raises(TypeError, match=r"tir\.StringImm"):
        relax.convert_to_expr(tir.StringImm("a"))
    with pytest.raises(TypeError, match="got object"):
        relax.convert_to_expr(object())


def test_struct_info_of_every_kind():
    n = tir.Var("n", "int64")
    infos = [
        ObjectStructInfo(),
        PrimStructInfo("float32"),
        PrimStructInfo(value=n),
        ShapeStructInfo([n, 2]),
        ShapeStructInfo(ndim=3),
        ShapeStructInfo(),
        TensorStructInfo([n, 2], "float32"),
        TensorStructInfo(dtype="float32", ndim=2),
        TensorStructInfo(dtype=None),
        TensorStructInfo([2], "float32", ir.VDevice("llvm")),
        TensorStructInfo(relax.Var("s", ShapeStructInfo(ndim=2)), "int8"),
        TupleStructInfo([F32, ObjectStructInfo()]),
        FuncStructInfo([F32], F32, purity=False),
        FuncStructInfo.opaque_func(),
        FuncStructInfo.opaque_func(derive_func="tvm.relax.struct_info.infer_by_sinfo_args"),
    ]
    for i, info in enumerate(infos):
        _round_trip(info)
        assert [info == other for other in infos] == [i == j for j in range(len(infos))]
    assert infos[10].ndim == 2 and infos[8].ndim == -1 and infos[8].dtype == ""
    assert FuncStructInfo.opaque_func().params is None


def test_bad_struct_info():
    with pytest.raises(ValueError, match="expected a shape or ndim"):
        TensorStructInfo([1, 2], "float32", ndim=2)
    with pytest.raises(ValueError, match="expected values or ndim"):
        ShapeStructInfo([1, 2], ndim=2)
    for make in (ShapeStructInfo, TensorStructInfo):
        with pytest.raises(ValueError, match="at least -1"):
            make(ndim=-2)
    with pytest.raises(TypeError, match="a ShapeExpr or a variable that is a shape"):
        TensorStructInfo(relax.Var("x", F32))
    with pytest.raises(TypeError, match="expected a value of type float32"):
        PrimStructInfo("float32", tir.Var("n", "int64"))
    with pytest.raises(TypeError, match="expected a dtype or a value"):
        PrimStructInfo()
    with pytest.raises(TypeError, match="expected struct info for 'x', got int"):
        relax.Var("x", 3)


def _function(n, name="x", add=1):
    x = relax.Var(name, TensorStructInfo([n, n + add], "float32"))
    y = relax.Var("y", TensorStructInfo([n, n + add], "float32"))
    block = relax.BindingBlock([relax.VarBinding(y, x)])
    return relax.Function([x], relax.SeqExpr([block], y), y.struct_info)


def test_functions_are_equal_up_to_names():
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    a, b = _function(n), _function(m, "z")
    assert ir.structural_equal(a, b)
    assert ir.structural_hash(a) == ir.structural_hash(b)
    assert not ir.structural_equal(a, _function(m, "z", 2))
    x = relax.Var("x", F32)
    y = relax.Var("x", TensorStructInfo([2, 3], "float16"))
    make = lambda v: relax.Function([v], v)
    assert not ir.structural_equal(make(x), make(y))
    assert ir.structural_equal(make(x), make(relax.Var("y", F32)))
    assert not ir.structural_equal(x, relax.Var("x", F32))
    _round_trip(a)


def test_a_local_function_may_call_itself():
    def make(name):
        x = relax.Var("x", F32)
        f = relax.Var(name, FuncStructInfo([F32], F32))
        call = relax.Call(f, [x])
        inner = relax.Function([x], call, F32)
        z = relax.Var("z", F32)
        block = relax.BindingBlock([relax.VarBinding(f, inner)])
        return relax.Function([z], relax.SeqExpr([block], relax.Call(f, [z])), F32)

    assert ir.structural_equal(make("f"), make("g"))
    assert ir.structural_hash(make("f")) == ir.structural_hash(make("g"))


def test_match_cast_defines_symbolic_variables():
    def make():
        n = tir.Var("n", "int64")
        x = relax.Var("x", TensorStructInfo(dtype="float32", ndim=1))
        y = relax.Var("y", TensorStructInfo([n], "float32"))
        block = relax.DataflowBlock([relax.MatchCast(y, x, y.struct_info)])
        return relax.Function([x], relax.SeqExpr([block], y), x.struct_info)

    assert ir.structural_equal(make(), make())
    assert ir.structural_hash(make()) == ir.structural_hash(make())
    _round_trip(make())


def test_what_a_function_returns():
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    x = relax.Var("x", TensorStructInfo([n], "float32"))
    coarse = TensorStructInfo(dtype="float32", ndim=1)
    assert relax.Function([x], x, coarse).ret_struct_info == x.struct_info
    y = relax.Var("y", TensorStructInfo([m], "float32"))
    assert relax.Function([x], y, y.struct_info).ret_struct_info == coarse
    f = relax.Function([x], x, is_pure=False, attrs={"a": 1})
    assert f.struct_info == FuncStructInfo([x.struct_info], x.struct_info, purity=False)
    assert f.attrs["a"] == 1
    with pytest.raises(ValueError, match="struct info of each parameter, got none for 'q'"):
        relax.Function([relax.Var("q")], x)
    with pytest.raises(ValueError, match="expected ret_struct_info"):
        relax.Function([x], relax.Call(ir.Op.get("tir.exp"), [x]))
    empty = relax.Function.create_empty([x], x.struct_info)
    assert empty.body.body.op.global_symbol == "_dummy_function"


def test_branches_are_sequences():
    x, c = relax.Var("x", F32), relax.Var("c", PrimStructInfo("bool"))
    branch = relax.If(c, x, relax.SeqExpr([], x))
    assert isinstance(branch.true_branch, relax.SeqExpr)
    assert branch.true_branch.body.same_as(x)
    _round_trip(branch)


def test_calls_want_functions():
    x = relax.Var("x", F32)
    with pytest.raises(ValueError, match="expected a function to call, got"):
        relax.Call(x, [])
    call = relax.ExternFunc("f")(x)
    assert call.op.struct_info == FuncStructInfo.opaque_func(
        derive_func="tvm.relax.struct_info.infer_by_sinfo_args"
    )
    with pytest.raises(TypeError, match="expected the struct info of a function"):
        relax.ExternFunc("f", F32)
    with pytest.raises(ValueError, match="expected an expression in normal form"):
        _ = relax.Call(ir.Op.get("tir.exp"), [x]).struct_info


def test_arguments_of_calls_are_converted():
    x = relax.Var("x", relax.TensorStructInfo([2]))
    call = relax.Call(relax.ExternFunc("f"), [(x, 1), "text"], sinfo_args=[x.struct_info])
    ir.assert_structural_equal(call.args[0], relax.Tuple([x, relax.PrimValue(1)]), True)
    ir.assert_structural_equal(call.args[1], relax.StringImm("text"))
    with pytest.raises(TypeError, match="expected an expression, a number, a text"):
        relax.Call(relax.ExternFunc("f"), [object()])


def test_struct_info_of_a_primfunc():
    n = tir.Var("n", "int32")
    A = tir.decl_buffer((n, n + 1), "float32", name="A")
    i, k = tir.Var("i", "int32"), tir.Var("k", "int64")
    body = tir.For(i, 0, n, tir.ForKind.SERIAL, tir.BufferStore(A, A[i, 0] + 1.0, [i, 0]))
    info = tir.PrimFunc([A, tir.Var("h", "handle"), k], body).struct_info
    m = tir.Var("m", "int64")
    expected = FuncStructInfo(
        [TensorStructInfo([m, m + 1], "float32"), ObjectStructInfo(), PrimStructInfo("int64")],
        TupleStructInfo([]),
        purity=info.purity,
    )
    assert info == expected


def test_types():
    assert relax.TensorType(2, "float32") == relax.TensorType(2, "float32")
    assert relax.TensorType(2, "float32") != relax.ShapeType(2)
    assert relax.ObjectType() == relax.ObjectType()
    assert relax.PackedFuncType() == relax.PackedFuncType()


def test_distributed_tensors():
    from tvm.relax import distributed as dist

    mesh = dist.DeviceMesh((2, 2), ir.Range(0, 4))
    placement = dist.Placement.from_text("S[0], R")
    info = dist.DTensorStructInfo(F32, mesh, placement)
    assert str(placement) == "S[0], R" and list(mesh.device_ids) == [0, 1, 2, 3]
    again = _round_trip(info)
    assert again == info
    with pytest.raises(ValueError, match="words"):
        dist.Placement.from_text("S[x]")
    with pytest.raises(ValueError, match="one device id for each of the 4"):
        dist.DeviceMesh((2, 2), [0, 1])
    with pytest.raises(ValueError, match="one placement for each of the 2"):
        dist.DTensorStructInfo(F32, mesh, dist.Placement.from_text("R"))
    with pytest.raises(ValueError, match="expected an axis"):
        dist.DTensorStructInfo(F32, mesh, dist.Placement.from_text("S[2], R"))


def test_tensors_of_tensor_expressions():
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    made = relax.expr.te_tensor(relax.Var("x", TensorStructInfo([n, 2], "float16")), {n: m})
    assert made.shape[0].same_as(m) and made.shape[1] == 2 and made.dtype == "float16"


def test_modules_of_other_spellings():
    import tvm.relax.analysis.analysis as analysis
    from tvm.relax.distributed.global_info import DeviceMesh

    assert analysis.well_formed is relax.analysis.well_formed
    assert DeviceMesh is relax.distributed.DeviceMesh


def test_wide_and_deep_programs():
    x = relax.Var("x", F32)
    block, last = [], x
    for i in range(10000):
        var = relax.Var(f"v{i}", F32)
        block.append(relax.VarBinding(var, last))
        last = var
    f = relax.Function([x], relax.SeqExpr([relax.BindingBlock(block)], last), F32)
    assert ir.structural_equal(f, _round_trip(f))
    deep = x
    for _ in range(10000):
        deep = relax.Tuple([deep])
    assert ir.structural_equal(deep, deep)
    assert isinstance(ir.structural_hash(deep), int)


def test_arrays_of_numpy_stand_on_either_side():
    x, ones = relax.Var("x", F32), np.ones(3, "float32")
    for call in (ones + x, x + ones, ones * x, np.float32(2) - x):
        assert call.op.name in ("relax.add", "relax.multiply", "relax.subtract")
    ir.assert_structural_equal((ones + x).args[0], relax.const(ones))


@pytest.mark.parametrize("known", ["nothing", "object", "tensor"])
def test_what_is_not_known_to_be_a_tuple_has_no_items(known):
    x = relax.Var("x", TensorStructInfo((2,), "float32"))
    expr = {
        "nothing": relax.Call(relax.ExternFunc("f"), [x]),
        "object": relax.Var("o", relax.ObjectStructInfo()),
        "tensor": x,
    }[known]
    with pytest.raises(TypeError, match="expected a tuple to take the items of, got"):
        list(expr)
    with pytest.raises(TypeError, match="expected a tuple to take the items of, got"):
        _first, _second = expr


def test_items_of_tuples_and_shapes():
    x = relax.Var("x", TensorStructInfo((2,), "float32"))
    pair = relax.Var("p", relax.TupleStructInfo([x.struct_info, x.struct_info]))
    first, second = pair
    assert (first.index, second.index) == (0, 1)
    assert [e.same_as(x) for e in relax.Tuple([x, x])] == [True, True]
    assert [int(e) for e in relax.ShapeExpr([1, 2, 3])] == [1, 2, 3]


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match="ShapeExpr: expected dimensions in a list or tuple, got"):
        TensorStructInfo(3, "float32")
    with pytest.raises(TypeError, match="Var: expected a text as name, got int"):
        relax.Var(3, TensorStructInfo((3,), "float32"))
