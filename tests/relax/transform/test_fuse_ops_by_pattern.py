# SPDX-License-Identifier: Apache-2.0
"""Operators that a backend takes over: found by patterns, merged, built by it."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import assert_structural_equal
from tvm.relax import transform
from tvm.relax.backend.pattern_registry import (
    get_pattern,
    get_patterns_with_prefix,
    register_patterns,
    remove_patterns,
)
from tvm.relax.backend.patterns import make_matmul_pattern
from tvm.relax.dpl import is_const, is_op, wildcard
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Dense:
    @R.function
    def main(
        x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 3), "float32"), b: R.Tensor((3,), "float32")
    ):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.add(y, b)
            r = R.nn.relu(z)
            R.output(r)
        return r


def dense(with_bias=True, activation="relax.nn.relu", name="mine.dense", **more):
    pattern, parts = make_matmul_pattern(with_bias, activation)
    return transform.FusionPattern(name, pattern, parts, **more)


def test_match_becomes_a_function():
    @I.ir_module
    class Expected:
        @R.function(private=True)
        def fused_relax_matmul_relax_add_relax_nn_relu(
            x: R.Tensor((2, 4), "float32"),
            w: R.Tensor((4, 3), "float32"),
            b: R.Tensor((3,), "float32"),
        ) -> R.Tensor((2, 3), "float32"):
            R.func_attr({"Composite": "mine.dense", "Primitive": True})
            with R.dataflow():
                y = R.matmul(x, w)
                z = R.add(y, b)
                r = R.nn.relu(z)
                R.output(r)
            return r

        @R.function
        def main(
            x: R.Tensor((2, 4), "float32"),
            w: R.Tensor((4, 3), "float32"),
            b: R.Tensor((3,), "float32"),
        ):
            cls = Expected
            with R.dataflow():
                r = cls.fused_relax_matmul_relax_add_relax_nn_relu(x, w, b)
                R.output(r)
            return r

    assert_structural_equal(transform.FuseOpsByPattern([dense()])(Dense), Expected)


def test_annotated_for_a_code_generator():
    @I.ir_module
    class Expected:
        @R.function
        def fused_relax_matmul_relax_add_relax_nn_relu_mine(
            x: R.Tensor((2, 4), "float32"),
            w: R.Tensor((4, 3), "float32"),
            b: R.Tensor((3,), "float32"),
        ) -> R.Tensor((2, 3), "float32"):
            R.func_attr({"Codegen": "mine"})

            @R.function
            def gv(
                x: R.Tensor((2, 4), "float32"),
                w: R.Tensor((4, 3), "float32"),
                b: R.Tensor((3,), "float32"),
            ) -> R.Tensor((2, 3), "float32"):
                R.func_attr({"Composite": "mine.dense", "Primitive": True})
                with R.dataflow():
                    y = R.matmul(x, w)
                    z = R.add(y, b)
                    r = R.nn.relu(z)
                    R.output(r)
                return r

            gv1 = gv(x, w, b)
            return gv1

        @R.function
        def main(
            x: R.Tensor((2, 4), "float32"),
            w: R.Tensor((4, 3), "float32"),
            b: R.Tensor((3,), "float32"),
        ):
            cls = Expected
            with R.dataflow():
                r = cls.fused_relax_matmul_relax_add_relax_nn_relu_mine(x, w, b)
                R.output(r)
            return r

    after = transform.FuseOpsByPattern([dense()], annotate_codegen=True)(Dense)
    assert_structural_equal(after, Expected)
    assert relax.analysis.well_formed(after)


def composites(mod):
    return sorted(
        str(f.attrs["Composite"])
        for f in mod.functions.values()
        if f.attrs is not None and "Composite" in f.attrs
    )


def test_first_pattern_wins_and_what_is_taken_stays_taken():
    bare = dense(False, None, "mine.matmul")
    assert composites(transform.FuseOpsByPattern([dense(), bare])(Dense)) == ["mine.dense"]
    assert composites(transform.FuseOpsByPattern([bare, dense()])(Dense)) == ["mine.matmul"]
    relu = ("mine.relu", is_op("relax.nn.relu")(wildcard()))
    both = transform.FuseOpsByPattern([bare, relu])(Dense)
    assert composites(both) == ["mine.matmul", "mine.relu"]


def test_check_sees_the_match_and_may_refuse():
    seen = {}

    def check(context):
        seen["root"] = context.annotated_expr["root"].op.name
        seen["names"] = sorted(context.annotated_expr)
        seen["bindings"] = sorted(v.name_hint for v in context.matched_bindings)
        seen["matched"] = context.matched_expr.op.name
        usages = {v.name_hint: [u.name_hint for u in us] for v, us in context.var_usages.items()}
        seen["usages"] = usages
        seen["bound"] = context.value_to_bound_var[context.matched_expr].name_hint
        return False

    assert transform.FuseOpsByPattern([dense(check=check)])(Dense).functions.keys()
    assert composites(transform.FuseOpsByPattern([dense(check=check)])(Dense)) == []
    assert seen == {
        "root": "relax.matmul",
        "names": ["bias", "lhs", "rhs", "root"],
        "bindings": ["r", "y", "z"],
        "matched": "relax.nn.relu",
        "usages": {"y": ["z"], "z": ["r"], "r": []},
        "bound": "r",
    }
    with pytest.raises(TypeError, match="check of 'mine.dense' to return a bool, got None"):
        transform.FuseOpsByPattern([dense(check=lambda _: None)])(Dense)


def test_attributes_of_the_function():
    def attrs(parts):
        return {"columns": str(int(parts["rhs"].struct_info.shape[1]))}

    after = transform.FuseOpsByPattern([dense(attrs_getter=attrs)])(Dense)
    func = after["fused_relax_matmul_relax_add_relax_nn_relu"]
    assert func.attrs["columns"] == "3"


def test_constants_inside_or_outside():
    @I.ir_module
    class Scale:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            with R.dataflow():
                y = R.multiply(x, R.const(2.0, "float32"))
                R.output(y)
            return y

    pattern = ("mine.scale", is_op("relax.multiply")(wildcard(), is_const()))
    inside = transform.FuseOpsByPattern([pattern])(Scale)
    outside = transform.FuseOpsByPattern([pattern], bind_constants=False)(Scale)
    assert len(inside["fused_relax_multiply"].params) == 1
    assert len(outside["fused_relax_multiply"].params) == 2


def test_entry_functions():
    mod = tvm.IRModule({"main": Dense["main"]})
    mod["other"] = relax.utils.copy_with_new_vars(Dense["main"]).with_attr("global_symbol", "other")
    after = transform.FuseOpsByPattern([dense()], entry_functions=["other"])(mod)
    calls = [after[name].body.blocks[0].bindings[0].value.op for name in ("main", "other")]
    assert calls[0].name == "relax.matmul" and isinstance(calls[1], tvm.ir.GlobalVar)


def test_intermediate_value_that_others_use_is_returned_as_well():
    @I.ir_module
    class Leak:
        @R.function
        def main(x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 3), "float32")):
            with R.dataflow():
                y = R.matmul(x, w)
                z = R.nn.relu(y)
                u = R.add(y, z)
                R.output(u)
            return u

    after = transform.FuseOpsByPattern([dense(False)])(Leak)
    assert relax.analysis.well_formed(after)
    assert isinstance(
        after["fused_relax_matmul_relax_nn_relu"].ret_struct_info, relax.TupleStructInfo
    )


def test_other_names_of_results():
    """Those behind a match stay outside, those within it go along."""

    @I.ir_module
    class Named:
        @R.function
        def main(x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 3), "float32")):
            with R.dataflow():
                y = R.matmul(x, w)
                between = y
                z = R.nn.relu(between)
                out = z
                R.output(out)
            return out

    after = transform.FuseOpsByPattern([dense(False)])(Named)
    assert relax.analysis.well_formed(after)
    bindings = after["main"].body.blocks[0].bindings
    assert [type(b.value) for b in bindings] == [relax.Call, relax.DataflowVar]
    x, w = np.random.rand(2, 4).astype("float32"), np.random.rand(4, 3).astype("float32")
    run = relax.VirtualMachine(tvm.compile(after, "llvm"), tvm.cpu())["main"]
    got = run(tvm.runtime.tensor(x), tvm.runtime.tensor(w)).numpy()
    np.testing.assert_allclose(got, x @ w, rtol=1e-5)


def test_groups_that_need_each_other_are_refused():
    @I.ir_module
    class Cycle:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.sin(a)
                c = R.add(a, b)
                R.output(c)
            return c

    exp = is_op("relax.exp")(wildcard())
    pattern = ("mine.pair", is_op("relax.add")(exp, wildcard()))
    with pytest.raises(ValueError, match="cycle"):
        transform.FuseOpsByPattern([pattern])(Cycle)


# ---- merging -------------------------------------------------------------------------------------
def test_neighbours_of_one_backend_are_merged():
    @I.ir_module
    class Chain:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.sin(a)
                c = R.tanh(b)
                d = R.add(a, c)
                R.output(d)
            return d

    def unary(backend, op):
        return (f"{backend}.{op}", is_op("relax." + op)(wildcard()))

    add = ("one.add", is_op("relax.add")(wildcard(), wildcard()))
    # Through sin, which nobody takes, exp and add cannot be one.
    some = transform.FuseOpsByPattern([unary("one", "exp"), unary("one", "tanh"), add])(Chain)
    merged = transform.MergeCompositeFunctions()(some)
    assert relax.analysis.well_formed(merged)
    names = sorted(v.name_hint for v in merged.functions)
    assert names == ["fused_relax_exp_one", "fused_relax_tanh_relax_add_one", "main"]
    every = [unary("one", op) for op in ("exp", "sin", "tanh")] + [add]
    merged = transform.MergeCompositeFunctions()(transform.FuseOpsByPattern(every)(Chain))
    names = sorted(v.name_hint for v in merged.functions)
    assert names == ["fused_relax_exp_relax_sin_relax_tanh_relax_add_one", "main"]
    func = merged[names[0]]
    assert func.attrs["Codegen"] == "one" and func.attrs["global_symbol"] == names[0]
    two = [unary("one", "exp"), unary("two", "sin"), unary("one", "tanh"), add]
    merged = transform.MergeCompositeFunctions()(transform.FuseOpsByPattern(two)(Chain))
    backends = [str(f.attrs["Codegen"]) for f in merged.functions.values() if "Codegen" in f.attrs]
    assert sorted(backends) == ["one", "one", "two"]


# ---- a backend -----------------------------------------------------------------------------------
@pytest.fixture
def numpy_backend():
    """A backend that runs NumPy: a module whose functions write into their last argument."""
    built = []

    @tvm_ffi.register_global_func("relax.ext.numpy_test", override=True)
    def build(functions, options, constant_names):
        built.append(([str(f.attrs["global_symbol"]) for f in functions], dict(options)))
        for func in functions:

            def run(x, w, b, out):
                result = np.maximum(x.numpy() @ w.numpy() + b.numpy(), 0)
                out.copyfrom(result)

            tvm_ffi.register_global_func(str(func.attrs["global_symbol"]), run, override=True)
        return []

    return built


def test_run_codegen(numpy_backend):
    patterns = [dense(name="numpy_test.dense")]
    cut = transform.FuseOpsByPattern(patterns, annotate_codegen=True)(Dense)
    symbol = "fused_relax_matmul_relax_add_relax_nn_relu_numpy_test"
    after = transform.RunCodegen({"numpy_test": {"level": 3}})(cut)
    assert numpy_backend == [([symbol], {"level": 3})]
    assert [v.name_hint for v in after.functions] == ["main"]
    call = after["main"].body.blocks[0].bindings[0].value
    assert call.op.name == "relax.call_dps_packed" and call.args[0].global_symbol == symbol
    assert "external_mods" in after.attrs
    assert relax.analysis.well_formed(after)
    # Nothing is reached, nothing is built.
    mod = tvm.IRModule(
        {**dict(cut.functions), "other": cut["main"].with_attr("global_symbol", "other")}
    )
    del numpy_backend[:]
    lone = relax.Function([], relax.Tuple([]), attrs={"global_symbol": "lone"})
    mod["lone"] = lone
    assert len(transform.RunCodegen(entry_functions=["lone"])(mod).functions) == len(mod.functions)
    assert numpy_backend == []


def test_run_codegen_errors():
    cut = transform.FuseOpsByPattern([dense(name="nobody.dense")], annotate_codegen=True)(Dense)
    with pytest.raises(ValueError, match="code generator 'relax.ext.nobody' for .*relu_nobody'"):
        transform.RunCodegen()(cut)
    tvm_ffi.register_global_func("relax.ext.nobody_else", lambda *_: 3, override=True)
    cut = transform.FuseOpsByPattern([dense(name="nobody_else.dense")], annotate_codegen=True)(
        Dense
    )
    with pytest.raises(TypeError, match="to return an array of modules, got int"):
        transform.RunCodegen()(cut)


def test_a_backend_that_fails():
    """It is named, with what it was to build; what it leaves is compiled when that is asked for."""

    @tvm_ffi.register_global_func("relax.ext.fails_test", override=True)
    def build(functions, options, constant_names):
        raise NotImplementedError("no such shape")

    cut = transform.FuseOpsByPattern([dense(name="fails_test.dense")], annotate_codegen=True)(Dense)
    before = tvm.ir.load_json(tvm.ir.save_json(cut))
    named = "(?s)'relax.ext.fails_test' to build 'fused_.*', got .*no such shape.*R.matmul"
    with pytest.raises(NotImplementedError, match=named):
        transform.RunCodegen()(cut)
    tvm.ir.assert_structural_equal(cut, before)
    after = transform.RunCodegen(fallback=True)(cut)
    assert relax.analysis.well_formed(after)
    assert "no such shape" in after.attrs["codegen_failures"]["fails_test"]
    left = "".join(func.script() for func in after.functions.values())
    assert "Codegen" not in left and "Composite" not in left
    rng = np.random.default_rng(0)
    shapes = [[int(d) for d in p.struct_info.shape.values] for p in Dense["main"].params]
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    results = [
        relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())["main"](
            *map(tvm.runtime.tensor, arrays)
        )
        for mod in (Dense, after)
    ]
    np.testing.assert_allclose(results[0].numpy(), results[1].numpy(), rtol=1e-5, atol=1e-5)


def test_constants_have_names():
    names = {}

    @tvm_ffi.register_global_func("relax.ext.constant_test", override=True)
    def build(functions, options, constant_names):
        names.update({str(name): c.data.numpy() for c, name in constant_names.items()})
        return []

    @I.ir_module
    class Scale:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            with R.dataflow():
                y = R.multiply(x, R.const(2.0, "float32"))
                R.output(y)
            return y

    pattern = ("constant_test.scale", is_op("relax.multiply")(wildcard(), is_const()))
    cut = transform.FuseOpsByPattern([pattern], annotate_codegen=True)(Scale)
    after = transform.RunCodegen()(cut)
    assert list(names.values()) == [2.0]
    kept = after.attrs["const_name_to_constant"]
    assert {str(k): float(v.numpy()) for k, v in kept.items()} == {next(iter(names)): 2.0}


def test_allocate_workspace():
    patterns = [dense(attrs_getter=lambda _: {"WorkspaceSize": 64})]
    cut = transform.FuseOpsByPattern(patterns, annotate_codegen=True)(Dense)
    after = transform.AllocateWorkspace()(cut)
    assert relax.analysis.well_formed(after)
    name = "fused_relax_matmul_relax_add_relax_nn_relu_mine1"
    assert sorted(v.name_hint for v in after.functions) == [name, "main"]
    assert after[name].params[-1].struct_info == R.Tensor((64,), "uint8")
    alloc, call = after["main"].body.blocks[0].bindings
    assert alloc.var.name_hint == "workspace_main"
    assert alloc.value.op.name == "relax.builtin.alloc_tensor"
    assert call.value.args[-1].same_as(alloc.var)
    inner = after[name].body.blocks[0].bindings
    assert inner[0].value.params[-1].struct_info == R.Tensor((64,), "uint8")
    assert inner[1].value.args[-1].same_as(after[name].params[-1])
    assert transform.AllocateWorkspace()(Dense).same_as(Dense)


def test_registry():
    names = ["registry_test.a", "registry_test.b"]
    register_patterns([(name, wildcard()) for name in names])
    try:
        assert [p.name for p in get_patterns_with_prefix("registry_test")] == names[::-1]
        assert get_pattern(names[0]).name == names[0] and get_pattern("registry_test") is None
        other = is_const()
        register_patterns([(names[0], other)])
        assert get_pattern(names[0]).pattern.same_as(other)
        assert [p.name for p in get_patterns_with_prefix("registry_test")] == names
    finally:
        remove_patterns(names)
    assert get_patterns_with_prefix("registry_test") == []
