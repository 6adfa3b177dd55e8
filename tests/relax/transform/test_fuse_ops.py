# SPDX-License-Identifier: Apache-2.0
"""FuseOps: which calls become one function, and the whole program after."""

import numpy as np
import pytest
import tvm
from tvm import ir, relax, te
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

from ..legalize.evaluate import evaluate


def flow(body, *params):
    """A module with main(params), the lowered dataflow block that `body(bb, *params)` emits."""
    bb = relax.BlockBuilder()
    with bb.function("main", list(params)):
        with bb.dataflow():
            result = body(bb, *params)
        bb.emit_func_output(result)
    return transform.AnnotateTIROpPattern()(transform.LegalizeOps()(bb.get()))


def var(name, *shape, dtype="float32"):
    return relax.Var(name, R.Tensor(shape, dtype))


def groups(mod):
    return sorted(
        gv.name_hint
        for gv, func in mod.functions_items()
        if isinstance(func, relax.Function) and gv.name_hint != "main"
    )


def fused(mod, **options):
    after = transform.FuseOps(**options)(mod)
    assert relax.analysis.well_formed(after)
    arrays = [
        np.random.default_rng(0).random([int(d) for d in p.struct_info.shape.values], "float32")
        for p in mod["main"].params
    ]
    kernels = transform.FuseTIR()(after)
    assert relax.analysis.well_formed(kernels)
    expected, got = evaluate(mod, arrays), evaluate(kernels, arrays)
    for e, g in zip(*(x if isinstance(x, tuple) else (x,) for x in (expected, got)), strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-5, atol=1e-6)
    return after


def test_fuse_ops_whole_program():
    @I.ir_module
    class Before:
        @T.prim_func(private=True)
        def exp(x: T.Buffer((T.int64(8),), "float32"), y: T.Buffer((T.int64(8),), "float32")):
            T.func_attr({"op_pattern": 0})
            for i in range(T.int64(8)):
                with T.block("exp"):
                    v = T.axis.spatial(T.int64(8), i)
                    y[v] = T.exp(x[v])

        @R.function
        def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
            cls = Before
            with R.dataflow():
                lv = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((8,), "float32"))
                gv = R.call_tir(cls.exp, (lv,), out_sinfo=R.Tensor((8,), "float32"))
                R.output(gv)
            return gv

    @I.ir_module
    class Expected:
        @T.prim_func(private=True)
        def exp(x: T.Buffer((T.int64(8),), "float32"), y: T.Buffer((T.int64(8),), "float32")):
            T.func_attr({"op_pattern": 0})
            for i in range(T.int64(8)):
                with T.block("exp"):
                    v = T.axis.spatial(T.int64(8), i)
                    y[v] = T.exp(x[v])

        @R.function(private=True)
        def fused_exp_exp(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
            R.func_attr({"Primitive": True})
            cls = Expected
            with R.dataflow():
                lv = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((8,), "float32"))
                gv = R.call_tir(cls.exp, (lv,), out_sinfo=R.Tensor((8,), "float32"))
                R.output(gv)
            return gv

        @R.function
        def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
            cls = Expected
            with R.dataflow():
                gv: R.Tensor((8,), "float32") = cls.fused_exp_exp(x)
                R.output(gv)
            return gv

    ir.assert_structural_equal(transform.FuseOps()(Before), Expected)


def test_fuse_ops_product_with_what_follows():
    def body(bb, x, w, b, y):
        a = bb.emit(relax.op.nn.conv2d(x, w, padding=1))
        return bb.emit_output(relax.op.nn.relu(bb.emit(relax.op.add(relax.op.add(a, b), y))))

    shapes = (1, 3, 8, 8), (4, 3, 3, 3), (1, 4, 1, 1), (1, 4, 8, 8)
    after = fused(flow(body, *(var(n, *s) for n, s in zip("xwby", shapes, strict=True))))
    assert groups(after) == ["fused_conv2d_add_add1_relu"]
    ir.assert_structural_equal(transform.FuseOps()(after), after)


def test_fuse_ops_one_product_per_group():
    def body(bb, x, v, w):
        a, b = bb.emit(relax.op.matmul(x, v)), bb.emit(relax.op.matmul(x, w))
        return bb.emit_output(relax.op.nn.relu(relax.op.add(a, b)))

    after = fused(flow(body, var("x", 4, 4), var("v", 4, 4), var("w", 4, 4)))
    assert groups(after) == ["fused_matmul_add_relu"]


def test_fuse_ops_nothing_before_a_product():
    def body(bb, x, w):
        return bb.emit_output(relax.op.matmul(relax.op.nn.relu(x), w))

    assert groups(fused(flow(body, var("x", 4, 4), var("w", 4, 4)))) == []


def test_fuse_ops_elementwise_into_a_reduction_and_not_behind():
    def body(bb, x):
        total = bb.emit(relax.op.sum(relax.op.exp(relax.op.multiply(x, x)), 1))
        return bb.emit_output(relax.op.exp(total))

    assert groups(fused(flow(body, var("x", 4, 8)))) == ["fused_multiply_tir_exp_sum"]


def test_fuse_ops_diamond():
    def body(bb, x):
        a = bb.emit(relax.op.exp(x))
        b, c = bb.emit(relax.op.nn.relu(a)), bb.emit(relax.op.sin(a))
        return bb.emit_output(relax.op.add(b, c))

    assert groups(fused(flow(body, var("x", 4, 8)))) == ["fused_tir_exp_relu_tir_sin_add"]


def test_fuse_ops_value_that_is_seen_outside():
    def body(bb, x):
        a = bb.emit_output(relax.op.exp(x))
        return relax.Tuple([a, bb.emit_output(relax.op.nn.relu(relax.op.sin(a)))])

    assert groups(fused(flow(body, var("x", 4, 8)))) == ["fused_tir_sin_relu"]


def test_fuse_ops_reduction_on_one_way():
    def body(bb, x):
        a = bb.emit(relax.op.exp(x))
        s = bb.emit(relax.op.sum(a, 1, keepdims=True))
        return bb.emit_output(relax.op.divide(a, s))

    assert groups(fused(flow(body, var("x", 4, 8)))) == []


def test_fuse_ops_movements():
    def body(bb, x):
        a = bb.emit(relax.op.permute_dims(relax.op.exp(x)))
        return bb.emit_output(relax.op.permute_dims(relax.op.reshape(a, (2, 4, 4))))

    assert groups(fused(flow(body, var("x", 4, 8)))) == [
        "fused_tir_exp_transpose_reshape_transpose1"
    ]


def test_fuse_ops_items_of_a_tuple():
    def body(bb, x):
        parts = bb.emit(relax.op.split(x, 2, 1))
        return bb.emit_output(relax.op.add(parts[0], relax.op.exp(parts[1])))

    after = fused(flow(body, var("x", 4, 8)))
    assert groups(after) == ["fused_split_tir_exp_add"]


def test_fuse_ops_items_of_a_tuple_from_outside():
    x = relax.Var("x", relax.TupleStructInfo([R.Tensor((4,), "float32")] * 3))

    def body(bb, x):
        return bb.emit_output(relax.op.add(relax.TupleGetItem(x, 0), relax.op.exp(x[2])))

    after = transform.FuseOps()(flow(body, x))
    (name,) = groups(after)
    assert len(after[name].params) == 2
    assert relax.analysis.well_formed(transform.FuseTIR()(after))


def test_fuse_ops_constants_are_parameters_each_once():
    weight = relax.const(np.ones((8,), "float32"))

    def body(bb, x):
        return bb.emit_output(relax.op.add(relax.op.multiply(relax.op.add(x, weight), weight), x))

    after = fused(flow(body, var("x", 4, 8)))
    (name,) = groups(after)
    assert [p.name_hint for p in after[name].params] == ["x", "param_0"]


def test_fuse_ops_equal_groups_are_one_function():
    def body(bb, x):
        a = bb.emit_output(relax.op.exp(relax.op.sin(x)))
        return bb.emit_output(relax.op.exp(relax.op.sin(a)))

    assert groups(fused(flow(body, var("x", 4, 8)))) == ["fused_tir_sin_tir_exp"]


def test_fuse_ops_symbolic_variables_that_no_parameter_shows():
    n = te.var("n", "int64")
    x = relax.Var("x", R.Tensor((n + 1,), "float32"))
    s = relax.Var("s", R.Shape([n]))

    def body(bb, x, s):
        return bb.emit_output(relax.op.exp(relax.op.sin(x)))

    after = transform.FuseOps()(flow(body, x, s))
    (name,) = groups(after)
    assert after[name].params[-1].name_hint == "tir_vars"
    assert relax.analysis.well_formed(after)
    kernel = transform.FuseTIR()(after)
    assert relax.analysis.well_formed(kernel)
    a = np.random.default_rng(0).random(5, "float32")
    (size,) = kernel["main"].params[1].struct_info.values
    call = kernel["main"].body.blocks[0].bindings[0].value
    assert len(call.args) == 3
    out = tvm.runtime.empty((5,), "float32")
    tvm.compile(kernel[name].with_attr("global_symbol", "main"), "llvm")(
        tvm.runtime.tensor(a), out, 4
    )
    np.testing.assert_allclose(out.numpy(), np.exp(np.sin(a)), rtol=1e-5)
    assert size.same_as(kernel["main"].params[0].struct_info.shape.values[0].a)


def test_fuse_ops_limits():
    def body(bb, x):
        for _ in range(8):
            x = bb.emit(relax.op.exp(x))
        return bb.emit_output(relax.op.exp(x))

    mod = flow(body, var("x", 4))
    with tvm.transform.PassContext(config={"relax.FuseOps.max_depth": 4}):
        after = transform.FuseOps()(mod)
    assert max(len(after[g].body.blocks[0].bindings) for g in groups(after)) == 4
    with tvm.target.Target({"kind": "metal", "max_function_args": 3}):

        def wide(bb, *xs):
            total = xs[0]
            for x in xs[1:]:
                total = bb.emit(relax.op.add(total, x))
            return bb.emit_output(relax.op.exp(total))

        after = transform.FuseOps()(flow(wide, *(var(f"x{i}", 4) for i in range(6))))
    assert all(len(after[g].params) <= 3 for g in groups(after))
    assert transform.FuseOps(fuse_opt_level=0)(mod).same_as(mod)
    with tvm.transform.PassContext(opt_level=0):
        assert transform.FuseOps()(mod).same_as(mod)


def test_fuse_ops_leaves_plain_blocks_and_opaque_calls():
    bb = relax.BlockBuilder()
    x = var("x", 4, 8)
    with bb.function("main", [x]):
        a = bb.emit(relax.op.exp(relax.op.sin(x)))
        with bb.dataflow():
            b = bb.emit(relax.op.exp(relax.op.sort(relax.op.sin(a))))
            c = bb.emit_output(relax.op.call_dps_packed("f", b, R.Tensor((4, 8), "float32")))
        bb.emit_func_output(c)
    mod = transform.AnnotateTIROpPattern()(transform.LegalizeOps()(bb.get()))
    assert groups(transform.FuseOps()(mod)) == []


@pytest.mark.parametrize("shape", ["chain", "shared", "ladder"])
def test_fuse_ops_is_linear(shape):
    """Ten thousand operators in less than what a quadratic pass would take."""

    def body(bb, x):
        first = at = bb.emit(relax.op.exp(x))
        for _ in range(10_000):
            other = {"chain": at, "shared": first, "ladder": x}[shape]
            at = bb.emit(relax.op.add(at, other))
        return bb.emit_output(at)

    mod = flow(body, var("x", 4))
    after = transform.FuseOps()(mod)
    assert groups(after)
    assert relax.analysis.well_formed(after)


def test_fuse_ops_operators_that_are_not_lowered():
    """They are no kernels: FuseTIR could make none of a group with them."""
    bb = relax.BlockBuilder()
    x = var("x", 4, 8)
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(relax.op.nn.gelu(relax.op.exp(relax.op.sin(x))))
            y = bb.emit_output(relax.op.cos(relax.op.abs(y)))
        bb.emit_func_output(y)
    mod = bb.get()
    assert transform.FuseOps()(mod)["main"].same_as(mod["main"])
    lowered = transform.LegalizeOps(skip_ops=["relax.nn.gelu"])(mod)
    after = transform.FuseOps()(transform.AnnotateTIROpPattern()(lowered))
    assert groups(after) == ["fused_tir_abs_tir_cos", "fused_tir_sin_tir_exp"]
    calls = [b.value.op for b in transform.FuseTIR()(after)["main"].body.blocks[0].bindings]
    assert [op.name for op in calls] == ["relax.call_tir", "relax.nn.gelu", "relax.call_tir"]


def heads_then_product(bb, x, w):
    a = bb.emit(relax.op.permute_dims(relax.op.reshape(x, (2, 4, 4)), (1, 0, 2)))
    return bb.emit_output(relax.op.matmul(relax.op.reshape(a, (8, 4)), w))


def test_fuse_ops_by_cost_leaves_reshapes_at_the_ends():
    mod = flow(heads_then_product, var("x", 8, 4), var("w", 4, 3))
    assert groups(fused(mod)) == ["fused_reshape_transpose_reshape1"]
    assert groups(fused(mod, by_cost=True)) == []


def test_fuse_ops_by_cost_reshapes_between_and_results():
    def between(bb, x):
        a = bb.emit(relax.op.reshape(relax.op.permute_dims(x), (2, 4, 4)))
        return bb.emit_output(relax.op.permute_dims(a))

    def result(bb, x):
        return bb.emit_output(relax.op.reshape(relax.op.exp(x), (8, 4)))

    for body, names in (
        (between, ["fused_transpose_reshape_transpose1"]),
        (result, ["fused_tir_exp_reshape"]),
    ):
        assert groups(fused(flow(body, var("x", 4, 8)), by_cost=True)) == names


def scores(bb, q, k):
    kt = bb.emit(relax.op.permute_dims(k, (0, 2, 1)))
    return bb.emit_output(relax.op.multiply(relax.op.matmul(q, kt), relax.const(0.5)))


@pytest.mark.parametrize("keys", [5, tvm.tir.Var("n", "int64")])
@pytest.mark.parametrize(
    ("rows", "name"), [(1, "fused_transpose_matmul_multiply"), (2, "fused_matmul_multiply")]
)
def test_fuse_ops_by_cost_transpose_into_a_product_of_one_row(rows, keys, name):
    mod = flow(scores, var("q", 3, rows, 8), var("k", 3, keys, 8))
    check = fused if isinstance(keys, int) else lambda mod, **o: transform.FuseOps(**o)(mod)
    assert groups(check(mod, by_cost=True)) == [name]
    assert groups(check(mod)) == ["fused_matmul_multiply"]


def test_fuse_ops_by_cost_transpose_that_others_read():
    def body(bb, q, k):
        kt = bb.emit(relax.op.permute_dims(k, (0, 2, 1)))
        a = bb.emit_output(relax.op.matmul(q, kt))
        return bb.emit_output(relax.Tuple([a, bb.emit_output(relax.op.sum(kt, 1))]))

    mod = flow(body, var("q", 3, 1, 8), var("k", 3, 5, 8))
    assert groups(fused(mod, by_cost=True)) == []


def test_fuse_ops_by_cost_element_of_a_product():
    def body(bb, x, w):
        element = bb.emit(relax.op.reshape(relax.op.matmul(x, w), ()))
        return bb.emit_output(relax.op.exp(element))

    mod = flow(body, var("x", 1, 4), var("w", 4, 1))
    assert groups(fused(mod, by_cost=True)) == []  # a view of the product


@pytest.mark.parametrize("rows", [6, tvm.tir.Var("n", "int64")])
@pytest.mark.parametrize(
    ("order", "names"),
    [
        ((1, 0, 2), ["fused_matmul_add_reshape_transpose"]),
        ((1, 2, 0), ["fused_matmul_add"]),  # it tears rows apart
    ],
)
def test_fuse_ops_by_cost_product_writes_transposed_rows(order, names, rows):
    def body(bb, x, w, b):
        y = bb.emit(relax.op.add(relax.op.matmul(x, w), b))
        heads = bb.emit(relax.op.permute_dims(relax.op.reshape(y, (rows, 2, 4)), order))
        return bb.emit_output(relax.op.nn.softmax(heads))

    mod = flow(body, var("x", rows, 3), var("w", 3, 8), var("b", 8))
    check = fused if isinstance(rows, int) else lambda mod, **o: transform.FuseOps(**o)(mod)
    assert groups(check(mod, by_cost=True)) == names
    assert groups(check(mod)) == ["fused_matmul_add", "fused_reshape_transpose"]


def test_fuse_ops_by_cost_windows_write_as_they_did():
    def body(bb, x, w):
        y = bb.emit(relax.op.reshape(relax.op.nn.conv2d(x, w), (1, 2, 2, 4, 4)))
        y = bb.emit(relax.op.permute_dims(y, (0, 2, 1, 3, 4)))
        return bb.emit_output(relax.op.nn.softmax(y))

    mod = flow(body, var("x", 1, 3, 6, 6), var("w", 4, 3, 3, 3))
    assert groups(fused(mod, by_cost=True)) == []
