# SPDX-License-Identifier: Apache-2.0
"""Every pattern: what it matches and what it does not."""

import numpy as np
import pytest
import tvm
from tvm import relax, tir
from tvm.relax.dpl import (
    AndPattern,
    CallPattern,
    DataTypePattern,
    FunctionPattern,
    NotPattern,
    OrPattern,
    PatternContext,
    TuplePattern,
    UnorderedTuplePattern,
    has_attr,
    has_dtype,
    is_call_dps_packed,
    is_call_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    reject,
    wildcard,
)
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

F32 = R.Tensor((2, 3), "float32")
x, y, z = (relax.Var(name, F32) for name in "xyz")
v = relax.DataflowVar("v", F32)


def add(a, b):
    return relax.op.add(a, b)


def multiply(a, b):
    return relax.op.multiply(a, b)


def divide(a, b):
    return relax.op.divide(a, b)


def test_wildcard():
    assert wildcard().match(x)
    assert wildcard().match(relax.const(1.0))
    assert wildcard().match(add(x, y))


def test_variables():
    assert is_var().match(x) and is_var("x").match(x) and not is_var("y").match(x)
    assert is_var().match(v) and is_dfv().match(v) and not is_dfv().match(x)
    assert is_var("x").name == "x" and is_var("x").name_hint == "x"
    assert not is_var().match(relax.const(1.0))
    gv = tvm.ir.GlobalVar("f")
    assert is_gv().match(gv) and is_gv("f").match(gv) and not is_gv("g").match(gv)
    assert not is_gv().match(x)


def test_constant():
    assert is_const().match(relax.const(np.zeros((2, 3), "float32")))
    assert not is_const().match(x)


def test_expression():
    assert is_expr(x).match(x) and not is_expr(x).match(y)
    assert is_expr(add(x, y)).match(add(x, y)) and not is_expr(add(x, y)).match(add(y, x))
    assert is_op("relax.add").match(tvm.ir.Op.get("relax.add"))


def test_call():
    pattern = is_op("relax.subtract")(is_var("x"), is_var("y"))
    assert isinstance(pattern, CallPattern)
    assert pattern.match(relax.op.subtract(x, y))
    assert not pattern.match(relax.op.subtract(y, x))
    assert not pattern.match(add(x, y))
    assert not is_op("relax.subtract")(wildcard()).match(relax.op.subtract(x, y))
    some = is_op("relax.subtract")(wildcard(), varg_default_wildcard=True)
    assert some.match(relax.op.subtract(x, y))
    assert not some.match(add(x, y))


def test_sum_and_product_commute():
    for make, name in (add, "relax.add"), (multiply, "relax.multiply"):
        pattern = is_op(name)(is_var("x"), is_const())
        assert pattern.match(make(x, relax.const(1.0)))
        assert pattern.match(make(relax.const(1.0), x))
        assert not pattern.match(make(relax.const(1.0), y))


def test_product_and_quotient_associate():
    a, b, c = is_var("x"), is_var("y"), is_var("z")
    assert (a * b / c).match(multiply(x, divide(y, z)))
    assert (a * b / c).match(multiply(divide(x, z), y))
    assert not (a * b / c).match(divide(multiply(x, z), y))
    assert (a * (b / c)).match(divide(multiply(x, y), z))
    assert ((a / c) * b).match(divide(multiply(y, x), z))
    assert not ((a / c) * b).match(divide(multiply(x, z), y))


def test_python_operators_make_calls():
    a, b = is_var("x"), is_var("y")
    assert (a + b).match(add(x, y))
    assert (a - b).match(relax.op.subtract(x, y))
    assert (a * b).match(multiply(x, y))
    assert (a / b).match(divide(x, y))
    assert (a + x).match(add(x, x))


def test_one_pattern_is_one_expression():
    a = wildcard()
    assert (a + a).match(add(x, x))
    assert not (a + a).match(add(x, y))
    assert (a + wildcard()).match(add(x, y))
    one = wildcard()
    assert (one - one).match(relax.op.subtract(relax.const(1.0), relax.const(1.0)))
    assert not (one - one).match(relax.op.subtract(relax.const(1.0), relax.const(2.0)))


def test_choices_are_taken_back():
    """What was chosen for one part is taken back when another part cannot match with it."""
    a, b = wildcard(), wildcard()
    pattern = is_op("relax.subtract")(a + b, a)
    assert pattern.match(relax.op.subtract(add(x, y), y))
    assert pattern.extract_matched_expr(relax.op.subtract(add(x, y), y))[b].same_as(x)
    either = is_op("relax.exp")(a) | is_op("relax.exp")(wildcard())
    deep = is_op("relax.subtract")(either, a)
    assert deep.match(relax.op.subtract(relax.op.exp(x), y))


def test_tuple():
    pattern = is_tuple([is_var("x"), is_var("y")])
    assert isinstance(pattern, TuplePattern) and len(pattern) == 2
    assert pattern.match(relax.Tuple([x, y]))
    assert not pattern.match(relax.Tuple([y, x]))
    assert not pattern.match(relax.Tuple([x, y, z]))
    unordered = is_tuple([is_var("x"), is_const(), wildcard()], unordered=True)
    assert isinstance(unordered, UnorderedTuplePattern) and len(unordered) == 3
    assert unordered.match(relax.Tuple([relax.const(1.0), y, x]))
    assert unordered.match(relax.Tuple([x, relax.const(1.0), relax.const(2.0)]))
    assert not unordered.match(relax.Tuple([relax.const(1.0), y, z]))


def test_tuple_get_item():
    t = relax.Var("t", R.Tuple(F32, F32))
    first = relax.TupleGetItem(t, 0)
    assert is_tuple_get_item(wildcard(), 0).match(first)
    assert is_tuple_get_item(wildcard()).match(first)
    assert wildcard()[0].match(first)
    assert not is_tuple_get_item(wildcard(), 1).match(first)
    assert not is_tuple_get_item(is_const(), 0).match(first)


def test_or_and_not():
    either, both, other = is_var("x") | is_var("y"), is_var("x") & is_var(), ~is_var("x")
    assert isinstance(either, OrPattern) and isinstance(both, AndPattern)
    assert isinstance(other, NotPattern)
    assert either.match(x) and either.match(y) and not either.match(z)
    assert both.match(x) and not both.match(y)
    assert other.match(y) and not other.match(x)
    assert reject(is_const()).match(x)


def test_optional():
    pattern = is_op("relax.matmul")(wildcard(), wildcard()).optional(
        lambda p: is_op("relax.nn.relu")(p)
    )
    a, b = relax.Var("a", R.Tensor((2, 3), "float32")), relax.Var("b", R.Tensor((3, 4), "float32"))
    product = relax.op.matmul(a, b)
    assert pattern.match(product) and pattern.match(relax.op.nn.relu(product))
    assert not pattern.match(relax.op.nn.relu(a))


def test_attributes():
    shape = R.Tensor((1, 3, 8, 8), "float32")
    data, weight = relax.Var("d", shape), relax.Var("w", R.Tensor((4, 3, 3, 3), "float32"))
    call = relax.op.nn.conv2d(data, weight, strides=(2, 1), padding=1, out_dtype="float16")
    conv = is_op("relax.nn.conv2d")(wildcard(), wildcard())
    assert conv.has_attr({"strides": [2, 1]}).match(call)
    assert conv.has_attr({"data_layout": "NCHW", "groups": 1}).match(call)
    assert conv.has_attr({"out_dtype": "float16"}).match(call)
    assert not conv.has_attr({"strides": [1, 1]}).match(call)
    assert not conv.has_attr({"unknown": 1}).match(call)
    assert has_attr({"strides": [2, 1]}).match(call) and not has_attr({"strides": [2, 1]}).match(x)
    assert is_op("relax.add").has_attr({"TOpPattern": 1}).match(tvm.ir.Op.get("relax.add"))
    func = relax.Function([x], x, attrs={"Composite": "a.b"})
    assert has_attr({"Composite": "a.b"}).match(func)
    assert not has_attr({"Composite": "a"}).match(func)


def test_dtype_and_shape():
    n = tir.Var("n", "int64")
    dynamic = relax.Var("d", R.Tensor((n, n + 1), "float32"))
    assert has_dtype("float32").match(x) and not has_dtype("float16").match(x)
    assert isinstance(has_dtype("float32"), DataTypePattern)
    assert wildcard().has_shape([2, 3]).match(x)
    assert not wildcard().has_shape([3, 2]).match(x) and not wildcard().has_shape([2]).match(x)
    assert wildcard().has_shape([n, 1 + n]).match(dynamic)
    assert not wildcard().has_shape([n, n]).match(dynamic)
    assert is_shape([2, n]).match(relax.ShapeExpr([2, n]))
    assert not is_shape([n, 2]).match(relax.ShapeExpr([2, n]))
    assert is_shape([2, n])[0] == 2 and len(is_shape([2, n])) == 2
    with pytest.raises(ValueError, match="is_shape: expected a list"):
        is_shape(2)


def test_struct_info():
    assert wildcard().has_struct_info(F32).match(x)
    assert wildcard().has_struct_info(R.Tensor(ndim=2)).match(x)
    assert not wildcard().has_struct_info(R.Tensor(ndim=3)).match(x)
    assert not wildcard().has_struct_info(R.Tensor((2, 3), "float16")).match(x)


def test_symbolic_dimensions_bind():
    n, m = (tir.Var(name, "int64") for name in "nm")

    def tensor(*dims):
        return wildcard().has_struct_info(R.Tensor(dims, "float32"))

    square = relax.Var("s", R.Tensor((3, 3), "float32"))
    assert tensor(n, m).match(x) and tensor(n, m).match(square)
    assert tensor(n, n).match(square) and not tensor(n, n).match(x)
    pattern = is_op("relax.matmul")(tensor(n, m), tensor(m, n))
    fits, other = (relax.Var("b", R.Tensor(dims, "float32")) for dims in ((3, 2), (3, 4)))
    assert pattern.match(relax.op.matmul(x, fits))
    assert not pattern.match(relax.op.matmul(x, other))
    # n + 1 is seen before n.
    late = is_op("relax.matmul")(tensor(2, n + 1), tensor(3, n))
    assert late.match(relax.op.matmul(x, fits)) and not late.match(relax.op.matmul(x, other))


def test_function():
    a, b = wildcard(), wildcard()
    pattern = FunctionPattern([a, b], is_op("relax.subtract")(a, b))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, y]):
        bb.emit_func_output(bb.emit(relax.op.subtract(x, y)))
    assert pattern.match(bb.get()["main"])
    assert pattern.match(relax.Function([x, y], relax.op.subtract(x, y), F32))
    assert not pattern.match(relax.Function([x, y], relax.op.subtract(y, x), F32))
    assert not pattern.match(relax.Function([x], x, F32))


@I.ir_module
class Calls:
    @T.prim_func(private=True)
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("b"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]

    @R.function(pure=False)
    def main(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")):
        cls = Calls
        t = R.call_tir(cls.f, (a,), R.Tensor((4,), "float32"))
        d = R.call_dps_packed("test.f", (a, t), R.Tensor((4,), "float32"))
        p = R.call_packed("test.g", d, b, sinfo_args=R.Tensor((4,), "float32"))
        return p


def test_calls_of_functions():
    t, d, p = (binding.value for binding in Calls["main"].body.blocks[0].bindings)
    assert is_call_tir("f").match(t) and not is_call_tir("g").match(t)
    assert is_call_tir("f", [is_var("a")]).match(t)
    assert not is_call_tir("f", [is_var("b")]).match(t)
    assert not is_call_tir("f", [is_var("a"), wildcard()]).match(t)
    assert is_call_dps_packed("test.f").match(d) and not is_call_dps_packed("test.g").match(d)
    assert is_call_dps_packed("test.f", [is_var("a"), wildcard()]).match(d)
    assert is_call_packed("test.g").match(p) and not is_call_packed("test.f").match(p)
    assert is_call_packed("test.g", [wildcard(), is_var("b")]).match(p)
    assert not is_call_packed("test.g", [wildcard()]).match(p)


def test_variables_are_looked_through():
    main = Calls["main"]
    values = relax.analysis.get_var2val(main)
    result = main.body.body
    inner = is_call_tir("f", [is_var("a")])
    pattern = is_call_packed("test.g", [is_call_dps_packed("test.f", [is_var(), inner]), is_var()])
    assert pattern.match(result, values) and not pattern.match(result)
    found = pattern.extract_matched_expr(result, values)
    assert found[inner].op.name == "relax.call_tir"
    assert pattern.extract_matched_expr(result) is None
    # Bindings that go in circles end.
    assert not inner.match(x, {x: y, y: x})


def test_extracted_expressions():
    a, b = wildcard(), wildcard()
    total = a + b
    pattern = is_op("relax.exp")(total)
    call = relax.op.exp(add(x, y))
    found = pattern.extract_matched_expr(call)
    assert found[pattern].same_as(call) and found[total].same_as(call.args[0])
    assert found[a].same_as(x) and found[b].same_as(y)


def test_duplicate():
    a = wildcard()
    assert not (a + a).match(add(x, y)) and (a + a.dup()).match(add(x, y))
    call = is_op("relax.exp")(is_var("x"))
    assert call.dup().match(relax.op.exp(x)) and not call.dup().same_as(call)


def test_fused_bias_activation():
    a, b = relax.Var("a", R.Tensor((2, 3), "float32")), relax.Var("b", R.Tensor((3, 4), "float32"))
    c = relax.Var("c", R.Tensor((4,), "float32"))
    whole = relax.op.nn.relu(add(relax.op.matmul(a, b), c))
    make = make_fused_bias_activation_pattern
    assert make("relax.matmul", True, "relax.nn.relu").match(whole)
    assert not make("relax.matmul", False, "relax.nn.relu").match(whole)
    assert make("relax.matmul").match(relax.op.matmul(a, b))


def test_deep_patterns_and_programs():
    depth = 10000
    pattern, expr = wildcard(), x
    for _ in range(depth):
        pattern, expr = is_op("relax.exp")(pattern), relax.op.exp(expr)
    assert pattern.match(expr)
    assert not is_op("relax.exp")(pattern).match(expr)


def test_many_ways_to_swap_are_not_all_tried():
    """Equal operands need not be swapped: 2^60 ways otherwise."""
    pattern, expr = is_const(), x
    for _ in range(60):
        pattern, expr = pattern + wildcard(), add(expr, expr)
    assert not pattern.match(expr)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="expected a pattern or an expression, got int"):
        is_op("relax.add")(1, wildcard())
    with pytest.raises(TypeError, match="expr"):
        wildcard().match(3)
    with pytest.raises(AttributeError, match="relax.addd"):
        is_op("relax.addd")
    with pytest.raises(TypeError, match="not iterable"):
        list(wildcard())
    with pytest.raises(RuntimeError, match="expected to be inside of a PatternContext"):
        PatternContext.current()
