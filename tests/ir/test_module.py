# SPDX-License-Identifier: Apache-2.0
"""IRModule, structural equality, JSON, types and operators."""

import numpy as np
import pytest
import tvm
from tvm import ir, tir


def _func(n=8, name="A", value=1.0):
    A = tir.decl_buffer((n,), "float32", name=name)
    i = tir.Var("i", "int32")
    store = tir.BufferStore(A, A[i] + value, [i])
    return tir.PrimFunc([A], tir.For(i, 0, n, tir.ForKind.SERIAL, store))


def test_lookup_update_and_iteration():
    mod = ir.IRModule({"f": _func(), "g": _func(4)})
    assert [v.name_hint for v in mod.get_global_vars()] == ["f", "g"]
    assert "f" in mod and "h" not in mod and len(mod) == 2
    mod["h"] = _func(2)
    assert mod["h"].body.extent == 2
    del mod["f"]
    assert [v.name_hint for v, _ in mod.items()] == ["g", "h"]
    mod.update({"g": _func(16)})
    assert mod["g"].body.extent == 16
    with pytest.raises(
        ValueError, match=r"expected the name of a function of the module \(g, h\), got 'gg'"
    ):
        mod["gg"]
    with pytest.raises(TypeError, match="expected a function"):
        mod["x"] = 3


def test_views_of_functions_print():
    functions = tvm.IRModule({"f": tvm.tir.PrimFunc([], tvm.tir.Evaluate(0))}).functions
    assert str(functions.keys()) == 'KeysView([I.GlobalVar("f")])'
    assert "@T.prim_func" in str(functions.values())
    assert str(functions.items()).startswith('ItemsView([(I.GlobalVar("f"), ')


def test_clone_is_independent_and_names_are_unique():
    mod = ir.IRModule({"f": _func()})
    copy = mod.clone()
    copy["g"] = _func()
    assert "g" not in mod
    with pytest.raises(ValueError, match="unique"):
        ir.IRModule({ir.GlobalVar("f"): _func(), ir.GlobalVar("f"): _func()})


def test_attributes():
    mod = ir.IRModule({}).with_attr("a", 1).with_attrs({"b": [1, 2]})
    assert mod.get_attr("a") == 1 and list(mod.attrs["b"]) == [1, 2]
    assert mod.without_attr("a").get_attr("a") is None
    f = _func().with_attr("global_symbol", "main").with_attr({"x": "y"})
    assert f.attrs["global_symbol"] == "main" and f.attrs.x == "y"
    assert "x" not in f.without_attr("x").attrs
    assert "main" in ir.IRModule.from_expr(f)


def test_structural_equality_ignores_names_of_bound_variables():
    a, b = _func(name="A"), _func(name="B")
    assert ir.structural_equal(a, b)
    assert ir.structural_hash(a) == ir.structural_hash(b)
    assert not ir.structural_equal(a, _func(value=2.0))
    assert ir.structural_equal(ir.IRModule({"f": a}), ir.IRModule({"f": b}))
    assert not ir.structural_equal(ir.IRModule({"f": a}), ir.IRModule({"g": b}))
    ir.assert_structural_equal(a, b)
    with pytest.raises(ValueError, match=r"shape\[0\]"):
        ir.assert_structural_equal(a, _func(9))


def test_free_variables_are_equal_only_when_mapped():
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    assert not ir.structural_equal(x + 1, y + 1)
    assert ir.structural_equal(x + 1, y + 1, map_free_vars=True)
    assert not ir.structural_equal(x + y, x + x, map_free_vars=True)


def test_json_round_trip():
    mod = ir.IRModule({"f": _func(), "g": _func(3)}, {"k": "v"})
    loaded = ir.load_json(ir.save_json(mod))
    ir.assert_structural_equal(mod, loaded)
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        ir.load_json('{"nodes": 3')


def test_json_runs_the_checks_of_constructors():
    text = ir.save_json(tir.Var("x", "int32") + tir.Var("y", "int32"))
    broken = text.replace('"int32"', '"int64"', 1)
    assert broken != text
    with pytest.raises((TypeError, ValueError)):
        ir.load_json(broken)


def test_json_holds_operators_and_tensors():
    """An operator is one object per name; a tensor comes back with its contents."""
    x = tir.Var("x", "float32")
    call = tir.exp(x)
    again = ir.load_json(ir.save_json([x, call]))
    assert again[1].op.same_as(call.op)
    tensor = tvm.runtime.tensor(np.arange(6, dtype="int16").reshape(2, 3))
    np.testing.assert_array_equal(ir.load_json(ir.save_json([tensor]))[0].numpy(), tensor.numpy())
    text = ir.save_json([call]).replace("tir.exp", "tir.exq")
    with pytest.raises(AttributeError, match="tir.exq"):
        ir.load_json(text)


def test_deep_programs():
    e = x = tir.Var("x", "int32")
    for _ in range(10_000):
        e = tir.Add(e, x)
    other = ir.load_json(ir.save_json(e))
    assert ir.structural_equal(e, other, map_free_vars=True)
    assert ir.structural_hash(e, True) == ir.structural_hash(other, True)


def test_types():
    assert ir.PrimType("int32") == ir.PrimType("int32") != ir.PrimType("int64")
    pointer = ir.PointerType(ir.PrimType("float32"))
    assert pointer.storage_scope == "global"
    assert tir.Var("p", pointer).dtype == "handle"
    assert ir.TupleType([]).fields is not None


def test_float_immediates_hold_values_of_their_type():
    assert ir.FloatImm("float32", 0.1).value == np.float32(0.1)
    assert ir.FloatImm("float16", 1e6).value == float("inf")
    assert ir.FloatImm("float8_e4m3fn", 447.0).value == 448.0
    assert ir.FloatImm("float4_e2m1fn", 100.0).value == 6.0
    with pytest.raises(ValueError, match="between -128 and 127, got 200"):
        ir.IntImm("int8", 200)
    with pytest.raises(TypeError, match="scalar integer"):
        ir.IntImm("float32", 1)


@pytest.mark.parametrize(
    "name",
    ["float16", "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3fnuz",
     "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn",
     "float6_e3m2fn", "float4_e2m1fn"],
)  # fmt: skip
def test_rounding_agrees_with_ml_dtypes(name):
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, name, np.float16))
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [rng.normal(0, s, 500) for s in (1e-4, 0.1, 1, 30, 1e4)] + [[0.0, -0.0, 1e9, -1e9]]
    )
    if name == "float8_e8m0fnu":
        values = np.abs(values[values != 0])
        values = values[values < 1e8]
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(dtype).astype(np.float64)
    got = np.array([ir.FloatImm(name, float(v)).value for v in values])
    np.testing.assert_array_equal(got, expected)


def test_ops_and_their_attributes():
    op = ir.Op.get("tir.exp")
    assert op.get_attr("TCallEffectKind") == tir.CallEffectKind.Pure
    assert op.same_as(ir.Op.get("tir.exp"))
    with pytest.raises(AttributeError, match="did you mean 'tir.exp'"):
        ir.Op.get("tir.exq")
    ir.register_op_attr("test.my_op", "FTest", 3)
    assert ir.Op.get("test.my_op").get_attr("FTest") == 3
    with pytest.raises(ValueError, match="set already"):
        ir.register_op_attr("test.my_op", "FTest", 4)
    ir.register_op_attr("test.my_op", "FTest", 5, level=11)
    assert ir.Op.get("test.my_op").get_attr("FTest") == 5


def test_name_supplies():
    names = ir.NameSupply()
    assert [names.fresh_name("a") for _ in range(3)] == ["a", "a_1", "a_2"]
    supply = ir.GlobalVarSupply(ir.IRModule({"f": _func()}))
    assert supply.fresh_global("f").name_hint == "f_1"


def test_public_spellings():
    assert tvm.IRModule is ir.IRModule
    assert tvm.ir.PrimFunc is tir.PrimFunc
    assert tvm.tir.IntImm is ir.IntImm
    assert tvm.transform is ir.transform


def test_typed_attributes_of_operators_refuse_other_types():
    ir.register_op_attr("test.typed_op", "TCallEffectKind", 0)
    with pytest.raises(TypeError, match="expected int for attribute 'TCallEffectKind' of test.ty"):
        ir.register_op_attr("test.typed_op", "TCallEffectKind", "pure", level=11)
    ir.Op.get("test.typed_op").reset_attr("TCallEffectKind")
    assert not ir.Op.get("test.typed_op").has_attr("TCallEffectKind")


def test_devices_of_a_module():
    devices = [ir.VDevice("llvm"), ir.VDevice("cuda", 1), ir.VDevice("cuda", 2, "shared")]
    mod = ir.IRModule({"f": _func()}, global_infos={"vdevice": devices})
    assert mod.lookup_vdevice("llvm").same_as(devices[0])
    assert mod.lookup_vdevice("cuda:1").vdevice_id == 2
    assert mod.lookup_vdevice("cuda:0:shared").vdevice_id == 2
    with pytest.raises(ValueError, match=r"declares \(llvm:0:global, .*\), got 'metal'"):
        mod.lookup_vdevice("metal")
    again = ir.load_json(ir.save_json(mod))
    assert ir.structural_equal(again, mod)
    assert devices[1] == ir.VDevice("cuda", 1) and devices[1] != devices[2]


def test_names_stay_right_when_functions_come_and_go():
    mod = ir.IRModule({"f": _func()})
    for i in range(100):
        mod[f"g{i}"] = _func(i + 1)
    del mod["g7"]
    assert "g7" not in mod and "g8" in mod and mod["g8"].body.extent == 9
    replaced = ir.GlobalVar("g8")
    mod.update_func(replaced, _func(3))
    assert mod.get_global_var("g8").same_as(replaced) and len(mod) == 100
    again = ir.load_json(ir.save_json(mod))
    assert again["g99"].body.extent == 100


def test_functions_of_the_registry_are_saved_by_name():
    func = ir.EnvFunc.get("ir.structural_hash")
    assert ir.load_json(ir.save_json(func)).func is not None
    assert ir.structural_equal(func, ir.EnvFunc.get("ir.structural_hash"))
    with pytest.raises(ValueError, match="expected the name of a global function, got 'no.such'"):
        ir.EnvFunc.get("no.such")
