# SPDX-License-Identifier: Apache-2.0
"""rewrite_call: the program before and the whole program after."""

import pytest
from tvm import relax
from tvm.ir import assert_structural_equal
from tvm.relax.dpl import is_const, is_op, is_tuple, rewrite_call, wildcard
from tvm.script import relax as R


def check(pattern, rewriter, before, expected):
    after = rewrite_call(pattern, rewriter, before)
    assert_structural_equal(after, expected)
    assert relax.analysis.well_formed(after)


def test_sum_of_equal_operands():
    x = wildcard()
    pattern = is_op("relax.add")(x, x)

    @R.function(private=True)
    def before(x: R.Tensor((16, 16), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            z = R.add(y, x)
            w = R.add(z, z)
            R.output(w)
        return w

    @R.function(private=True)
    def expected(x: R.Tensor((16, 16), "float32")):
        with R.dataflow():
            y = R.multiply(x, R.const(2.0, "float32"))
            z = R.add(y, x)
            w = R.multiply(z, R.const(2.0, "float32"))
            R.output(w)
        return w

    check(pattern, lambda _, m: m[x] * relax.const(2.0, "float32"), before, expected)
    assert rewrite_call(pattern, lambda e, _: e, before).same_as(before)
    assert rewrite_call(pattern, lambda e, m: None, before).same_as(before)


def test_chain_becomes_one_call_and_its_bindings_go():
    q, k, v = wildcard(), wildcard(), wildcard()
    scores = is_op("relax.matmul")(q, is_op("relax.permute_dims")(k))
    pattern = is_op("relax.matmul")(is_op("relax.nn.softmax")(scores), v)

    @R.function(private=True)
    def before(
        q: R.Tensor((4, 8), "float32"),
        k: R.Tensor((5, 8), "float32"),
        v: R.Tensor((5, 6), "float32"),
    ):
        with R.dataflow():
            t = R.permute_dims(k, axes=None)
            s = R.matmul(q, t)
            p = R.nn.softmax(s, axis=-1)
            o = R.matmul(p, v)
            R.output(o)
        return o

    @R.function(private=True)
    def expected(
        q: R.Tensor((4, 8), "float32"),
        k: R.Tensor((5, 8), "float32"),
        v: R.Tensor((5, 6), "float32"),
    ):
        with R.dataflow():
            o = R.call_dps_packed("attention", (q, k, v), R.Tensor((4, 6), "float32"))
            R.output(o)
        return o

    def rewriter(expr, m):
        return relax.op.call_dps_packed("attention", (m[q], m[k], m[v]), expr.struct_info)

    check(pattern, rewriter, before, expected)


def test_values_behind_variables_are_not_computed_again():
    """A match gives values; where they were bound, the variable is used."""
    inner = wildcard()
    pattern = is_op("relax.exp")(inner)

    @R.function(private=True)
    def before(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.sin(x)
            b = R.exp(a)
            c = R.add(a, b)
            R.output(c)
        return c

    @R.function(private=True)
    def expected(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.sin(x)
            lv = R.tanh(a)
            b = R.multiply(lv, a)
            c = R.add(a, b)
            R.output(c)
        return c

    def rewriter(_, m):
        assert m[inner].op.name == "relax.sin"
        return relax.op.multiply(relax.op.tanh(m[inner]), m[inner])

    check(pattern, rewriter, before, expected)


def test_operand_in_the_place_of_a_call():
    arg, shape = wildcard(), wildcard()
    pattern = is_op("relax.reshape")(arg, shape)

    def rewriter(_, m):
        if relax.get_shape_of(m[arg]).values[0] == m[shape].values[0]:
            return m[arg]
        return None

    @R.function(private=True)
    def before(x: R.Tensor((16,), "float32")):
        with R.dataflow():
            a = R.add(x, x)
            b = R.reshape(a, (16,))
            c = R.reshape(b, (16,))
            R.output(c)
        return c

    @R.function(private=True)
    def expected(x: R.Tensor((16,), "float32")):
        with R.dataflow():
            c = R.add(x, x)
            R.output(c)
        return c

    check(pattern, rewriter, before, expected)


def test_what_a_rewriter_gives_is_rewritten():
    """a - b -> a + (-b), -b -> b * -1: both rules on the result of each other, in one walk."""
    a, b = wildcard(), wildcard()
    difference = is_op("relax.subtract")(a, b)
    pattern = difference | is_op("relax.negative")(a)

    @R.function(private=True)
    def before(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        z = R.subtract(x, y)
        return z

    @R.function(private=True)
    def expected(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        gv = R.multiply(y, R.const(-1.0, "float32"))
        z = R.add(x, gv)
        return z

    def rewriter(_, m):
        if difference in m:
            return m[a] + (-m[b])
        return m[a] * relax.const(-1.0, "float32")

    check(pattern, rewriter, before, expected)


def test_branches_and_local_functions():
    x = wildcard()
    pattern = is_op("relax.exp")(x)

    @R.function(private=True)
    def before(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")):
        @R.function
        def local(p: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            q = R.exp(p)
            return q

        if c:
            t = R.exp(x)
            z = local(t)
        else:
            z = R.sin(x)
        return z

    @R.function(private=True)
    def expected(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")):
        @R.function
        def local(p: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            q = R.tanh(p)
            return q

        if c:
            t = R.tanh(x)
            z = local(t)
        else:
            z = R.sin(x)
        return z

    check(pattern, lambda _, m: relax.op.tanh(m[x]), before, expected)


def test_inside_of_another_block_is_not_seen():
    """What is inside of a dataflow block cannot be used behind it."""
    x = wildcard()
    pattern = is_op("relax.exp")(is_op("relax.sin")(x))

    @R.function(private=True)
    def before(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.tanh(x)
            b = R.sin(a)
            R.output(b)
        c = R.exp(b)
        return c

    assert rewrite_call(pattern, lambda _, m: m[x], before).same_as(before)


def test_tuples():
    a, b = wildcard(), wildcard()
    pattern = is_op("relax.concat")(is_tuple([a, b]))

    @R.function(private=True)
    def before(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        z = R.concat((x, y), axis=0)
        return z

    @R.function(private=True)
    def expected(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        gv = R.stack((x, y), axis=0)
        z = R.flatten(gv)
        return z

    check(pattern, lambda _, m: relax.op.flatten(relax.op.stack([m[a], m[b]])), before, expected)


def test_rewriting_without_end_is_an_error_that_shows_it():
    x, c = wildcard(), is_const()
    pattern = is_op("relax.add")(x, c)

    @R.function
    def func(x: R.Tensor((4,), "float32")):
        y = R.add(x, R.const(1.0, "float32"))
        return y

    def grows(expr, _):
        return expr + relax.const(0.0, "float32")

    def swaps(_, m):
        return relax.op.add(m[c], m[x])

    for rewriter in grows, swaps:
        with pytest.raises(ValueError, match="(?s)come to an end, got .* binding of 'y'.*R.add"):
            rewrite_call(pattern, rewriter, func)


def test_errors_of_rewriters():
    x = wildcard()
    pattern = is_op("relax.exp")(x)
    other = relax.Var("other", R.Tensor((4,), "float32"))

    @R.function
    def func(x: R.Tensor((4,), "float32")):
        y = R.exp(x)
        return y

    def run(rewriter, error, text):
        with pytest.raises(error, match=text):
            rewrite_call(pattern, rewriter, func)

    run(lambda e, m: 3, TypeError, "expected the rewriter to return an expression or None, got int")
    run(lambda e, m: relax.op.sin(other), ValueError, "in scope where 'y' is bound, got 'other'")
    run(lambda e, m: relax.op.astype(m[x], "int32"), TypeError, "expected .*float32.*got .*int32")
    run(lambda e, m: relax.const([1.0, 2.0], "float32"), TypeError, "expected .*4.*got .*2")
    with pytest.raises(KeyError):
        rewrite_call(pattern, lambda e, m: m[other], func)


def test_every_value_is_asked_once():
    """One walk is enough, however long the chain is."""
    count, asked = 2000, []
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((4,), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = x
            for _ in range(count):
                out = bb.emit(relax.op.add(out, x))
            out = bb.emit_output(out)
        bb.emit_func_output(out)
    a, b = wildcard(), wildcard()

    def rewriter(expr, m):
        asked.append(expr)
        return relax.op.subtract(m[a], m[b])

    after = rewrite_call(a + b, rewriter, bb.get()["main"])
    assert len(asked) == count and len(after.body.blocks[0].bindings) == count + 1
