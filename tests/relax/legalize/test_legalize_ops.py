# SPDX-License-Identifier: Apache-2.0
"""LegalizeOps: names of functions, what stays, custom lowerings, targets."""

import numpy as np
import pytest
import tvm
from tvm import relax, tir, topi
from tvm.target import Target

from .evaluate import evaluate


def graph(make, *infos, **attrs):
    """A module whose main function returns what `make` gives for parameters of these kinds."""
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{i}", info) for i, info in enumerate(infos)]
    with builder.function("main", params, attrs=attrs or None):
        builder.emit_func_output(builder.emit(make(*params)))
    return builder.finalize()


def tensor(*shape, dtype="float32"):
    return relax.TensorStructInfo(shape, dtype)


def legalize(mod, *args, **kwargs):
    return relax.transform.LegalizeOps(*args, **kwargs)(mod)


def functions(mod):
    return sorted(str(v.name_hint) for v in mod.get_global_vars() if v.name_hint != "main")


NAMES = {
    "add": (relax.op.add, tensor(3), tensor(3)),
    "tir_exp": (relax.op.exp, tensor(3)),
    "erf": (relax.op.erf, tensor(3)),
    "transpose": (relax.op.permute_dims, tensor(3, 4)),
    "reshape": (relax.op.flatten, tensor(3, 4)),
    "concatenate": (lambda a, b: relax.op.concat([a, b]), tensor(3), tensor(4)),
    "cast": (lambda x: relax.op.astype(x, "int32"), tensor(3)),
    "leaky_relu": (relax.op.nn.leakyrelu, tensor(3)),
    "gather": (relax.op.gather_elements, tensor(3), tensor(2, dtype="int64")),
    "te_gather_nd": (relax.op.gather_nd, tensor(3), tensor(2, 1, dtype="int64")),
    "searchsorted": (relax.op.bucketize, tensor(3), tensor(2)),
    "nll_loss_without_weight": (relax.op.nn.nll_loss, tensor(2, 3), tensor(2, dtype="int64")),
    "reflect_pad": (lambda x: relax.op.nn.pad(x, [1, 1], "reflect"), tensor(3)),
    "replicate_pad": (lambda x: relax.op.nn.pad(x, [1, 1], "edge"), tensor(3)),
    "zeros": (relax.op.zeros_like, tensor(3)),
    "conv2d": (relax.op.nn.conv2d, tensor(1, 2, 4, 4), tensor(3, 2, 3, 3)),
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    make, *infos = NAMES[name]
    assert functions(legalize(graph(make, *infos))) == [name]


def test_equal_functions_are_one():
    mod = graph(lambda x: relax.op.add(relax.op.add(x, x), x), tensor(4))
    assert functions(legalize(mod)) == ["add"]


def test_scalar_constants_are_part_of_the_expression():
    mod = legalize(graph(lambda x: relax.op.add(x, relax.const(2.0, "float32")), tensor(3)))
    assert len(mod["add"].params) == 2
    both = lambda: relax.op.add(relax.const(1.0, "float32"), relax.const(2.0, "float32"))
    assert evaluate(legalize(graph(both)), []) == 3.0


def test_constants_of_constants():
    for make in (
        lambda: relax.op.arange(1, 7, 2),
        lambda: relax.op.astype(relax.const(2.7, "float32"), "int32"),
    ):
        mod = legalize(graph(make))
        assert functions(mod) == []


def test_unknown_shapes_stay():
    mod = graph(relax.op.nn.relu, relax.TensorStructInfo(dtype="float32", ndim=2))
    assert functions(legalize(mod)) == []
    tvm.ir.assert_structural_equal(legalize(mod), mod)


def test_skipped_operators_stay():
    mod = graph(lambda x: relax.op.exp(relax.op.nn.relu(x)), tensor(3))
    assert functions(legalize(mod, skip_ops=["relax.exp"])) == ["relu"]


def test_custom_lowering():
    def doubled(builder, call):
        return builder.call_te(topi.multiply, call.args[0], tir.const(2, "float32"))

    def by_an_operator(builder, call):
        return relax.op.add(call.args[0], call.args[0])

    x = np.arange(3, dtype="float32")
    for custom in (doubled, by_an_operator):
        mod = legalize(graph(relax.op.nn.relu, tensor(3)), {"relax.nn.relu": custom})
        np.testing.assert_array_equal(evaluate(mod, [x]), 2 * x)


def test_a_schedule_in_a_lowering_is_no_schedule():
    def scheduled(builder, call):
        lowered = builder.call_te(topi.nn.relu, call.args[0])
        var = lowered.args[0]
        sch = tir.Schedule(builder.get()[var])
        sch.transform_layout("compute", ("write", 0), lambda i: (i // 4, i % 4))
        return builder.call_te(topi.nn.relu, call.args[0])

    mod = legalize(graph(relax.op.nn.relu, tensor(8)), {"relax.nn.relu": scheduled})
    assert not any(
        tir.schedule.is_scheduled(f) for f in mod.functions.values() if isinstance(f, tir.PrimFunc)
    )


def test_functions_get_the_target_of_the_graph():
    target = Target("llvm -num-cores=3")
    mod = legalize(graph(relax.op.nn.relu, tensor(3), target=target))
    assert mod["relu"].attrs["target"].attrs["num-cores"] == 3
    assert "target" not in legalize(graph(relax.op.nn.relu, tensor(3)))["relu"].attrs


def test_a_tuple_of_one_stays_a_tuple():
    mod = graph(lambda x: relax.op.meshgrid([x]), tensor(3))
    lowered = legalize(mod)
    assert relax.analysis.well_formed(lowered)
    tvm.ir.assert_structural_equal(
        lowered["main"].ret_struct_info, relax.TupleStructInfo([tensor(3)])
    )
    x = np.arange(3, dtype="float32")
    (got,) = evaluate(lowered, [x])
    np.testing.assert_array_equal(got, x)


def test_arithmetic_keeps_the_type_that_the_graph_says():
    """Kernels compute with bool as with integers."""
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    expected = {
        "add": a | b, "multiply": a & b, "maximum": a | b, "minimum": a & b, "square": a,
    }  # fmt: skip
    for name, result in expected.items():
        given = [a, b][: 1 if name == "square" else 2]
        infos = [tensor(4, dtype="bool") for _ in given]
        mod = graph(getattr(relax.op, name), *infos)
        lowered = legalize(mod)
        tvm.ir.assert_structural_equal(lowered["main"].ret_struct_info, tensor(4, dtype="bool"))
        np.testing.assert_array_equal(evaluate(lowered, given), result)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
def test_a_scalar_constant_is_cast_to_its_value(dtype):
    mod = legalize(graph(lambda: relax.op.astype(relax.const(3.0, "float32"), dtype)))
    assert float(evaluate(mod, [])) == 3.0


def test_what_repeats_is_lowered_once_and_computes_its_own():
    """Same operator, same shapes: one function, called with each call's own arguments."""

    def make(x, y):
        op, two, three = relax.op, relax.const(2.0, "float32"), relax.const(3.0, "float32")
        parts = [op.subtract(x, y), op.subtract(y, x), op.subtract(x, x)]
        parts += [op.multiply(x, two), op.multiply(x, three), op.multiply(y, two)]
        parts += [op.sum(x, [0]), op.sum(x, [1]), op.sum(y, [0])]
        parts += [op.concat([x, y]), op.concat([y, x]), op.concat([y, x], 1), op.concat([x, x])]
        parts += [op.broadcast_to(op.sum(y), (2, 2)), op.broadcast_to(op.sum(x), (4, 2))]
        return relax.Tuple(parts)

    x, y = np.arange(4.0).reshape(2, 2).astype("float32"), np.full((2, 2), 5, "float32")
    expected = [x - y, y - x, x - x, x * 2, x * 3, y * 2, x.sum(0), x.sum(1), y.sum(0)]
    expected += [np.concatenate(p) for p in ([x, y], [y, x])] + [np.concatenate([y, x], 1)]
    expected += [np.concatenate([x, x]), np.full((2, 2), 20), np.full((4, 2), 6)]
    for attrs in ({}, {"target": Target("llvm")}):
        mod = legalize(graph(make, tensor(2, 2), tensor(2, 2), **attrs))
        for got, want in zip(evaluate(mod, [x, y]), expected, strict=True):
            np.testing.assert_array_equal(got, want)
        kinds = ["broadcast_to", "broadcast_to1", "concatenate", "concatenate1", "multiply"]
        kinds += ["multiply1", "subtract", "sum", "sum1", "sum2"]
        assert functions(mod) == kinds


def test_lowerings_of_users_see_every_call():
    calls = []

    def lower(builder, call):
        calls.append(call)
        return builder.call_te(topi.exp, call.args[0])

    mod = graph(lambda x: relax.op.exp(relax.op.exp(relax.op.exp(x))), tensor(3))
    assert functions(legalize(mod, {"relax.exp": lower})) == ["exp"]
    assert len(calls) == 3


def test_indices_of_a_transpose_stay_vectors():
    """int64 indices of the kernel that transposes tiles are ramps: else its stores are scatters."""
    mod = legalize(graph(relax.op.permute_dims, tensor(256, 256)))
    target = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=2")
    target = Target(target, host=target)
    kernel = tvm.IRModule({"main": mod["transpose"].with_attr("global_symbol", "main")})
    with target:
        lowered = tir.get_default_tir_pipeline(target)(tir.transform.BindTarget(target)(kernel))
    text = lowered.script()
    assert "T.Shuffle" in text and 'T.Cast("int64x' not in text


def test_a_constant_beside_a_size():
    """Neither operand is a tensor of the program: the constant stays one."""
    mod = tvm.script.from_source("""
from tvm.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "int64")):
        n = T.int64()
        with R.dataflow():
            a = R.add(R.const(3, "int64"), R.prim_value(n * 2))
            b = R.subtract(R.prim_value(n * 2), R.const(3, "int64"))
            R.output(a, b)
        return (a, b)
""")
    machine = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    found = machine["main"](np.zeros(5, "int64"))
    assert [int(each.numpy()) for each in found] == [13, 7]


@pytest.mark.parametrize("where", [[], 1, 2])
def test_parts_of_a_split_are_a_tuple_as_the_graph_says(where):
    mod = graph(lambda x: relax.op.split(x, where, axis=0), tensor(4, 2))
    x = np.arange(8, dtype="float32").reshape(4, 2)
    before = mod["main"].ret_struct_info
    tvm.ir.assert_structural_equal(legalize(mod)["main"].ret_struct_info, before)
    found = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())["main"](x)
    parts = [x] if where in ([], 1) else np.split(x, where)
    for one, part in zip([found] if where == 1 else found, parts, strict=True):
        np.testing.assert_array_equal(one.numpy(), part)
