# SPDX-License-Identifier: Apache-2.0
"""Patterns of several bindings of a dataflow block."""

import pytest
from tvm import relax
from tvm.ir import assert_structural_equal
from tvm.relax.dpl import PatternContext, PatternSeq, is_op, rewrite_bindings, wildcard
from tvm.script import relax as R


@R.function
def diamond(x: R.Tensor((2, 2), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.nn.relu(a)
        c = R.sin(a)
        d = R.subtract(b, c)
        R.output(d)
    return d


@R.function
def parallel(x: R.Tensor((2, 2), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.nn.relu(a)
        e = R.exp(b)
        c = R.sin(e)
        d = R.subtract(b, c)
        R.output(d)
    return d


@R.function
def chain(x: R.Tensor((2, 2), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.nn.relu(a)
        c = R.sin(b)
        R.output(c)
    return c


def block(func):
    return func.body.blocks[0]


def unary(name):
    return is_op("relax." + name)(wildcard(), add_constraint=False)


def test_sequence():
    for func, expected in (chain, True), (diamond, False), (parallel, False):
        with PatternContext() as ctx:
            exp, relu, sin = unary("exp"), unary("nn.relu"), unary("sin")
            seq = exp >> relu >> sin
        assert isinstance(seq, PatternSeq) and seq[1].same_as(relu)
        found = ctx.match_dfb(block(func))
        assert (found is not None) == expected
        if expected:
            assert [found[p].name_hint for p in (exp, relu, sin)] == ["a", "b", "c"]


def test_used_by_allows_other_users():
    with PatternContext() as ctx:
        exp, relu = unary("exp"), unary("nn.relu")
        exp ^ relu
    assert ctx.match_dfb(block(chain)) and ctx.match_dfb(block(diamond))
    with PatternContext() as only:
        unary("exp") >> unary("nn.relu")
    assert only.match_dfb(block(chain)) and not only.match_dfb(block(diamond))


def diamond_context():
    with PatternContext() as ctx:
        a, b, c = unary("exp"), unary("nn.relu"), unary("sin")
        d = is_op("relax.subtract")(wildcard(), wildcard(), add_constraint=False)
        a.fork_to(b, c)
        b.used_by(d, 0)
        c.used_by(d, 1)
    return ctx, (a, b, c, d)


def test_diamond():
    ctx, patterns = diamond_context()
    found = ctx.match_dfb(block(diamond))
    assert [found[p].name_hint for p in patterns] == ["a", "b", "c", "d"]
    assert ctx.match_dfb(block(parallel)) is None


def test_argument_index():
    with PatternContext() as ctx:
        unary("nn.relu").used_by(
            is_op("relax.subtract")(wildcard(), wildcard(), add_constraint=False), 1
        )
    assert ctx.match_dfb(block(diamond)) is None


def test_output_of_the_block_has_other_users():
    @R.function
    def func(x: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.sin(a)
            R.output(a, b)
        return (a, b)

    with PatternContext() as only:
        unary("exp") >> unary("sin")
    with PatternContext() as any_user:
        unary("exp") ^ unary("sin")
    assert only.match_dfb(block(func)) is None and any_user.match_dfb(block(func))


def test_calls_in_a_context_constrain_their_arguments():
    with PatternContext() as ctx:
        x = wildcard()
        b, c = is_op("relax.nn.relu")(x), is_op("relax.sin")(x)
    found = ctx.match_dfb(block(diamond))
    assert found[x].name_hint == "a" and found[b].name_hint == "b" and found[c].name_hint == "c"
    assert ctx.match_dfb(block(chain)) is None


def test_two_patterns_are_two_bindings():
    with PatternContext() as ctx:
        first, second = unary("exp"), unary("exp")
        x = wildcard()
        x.fork_to(first, second)
    assert ctx.match_dfb(block(diamond)) is None

    @R.function
    def twice(x: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.exp(x)
            c = R.add(a, b)
            R.output(c)
        return c

    found = ctx.match_dfb(block(twice))
    assert {found[first].name_hint, found[second].name_hint} == {"a", "b"}


def test_same_shape():
    @R.function
    def func(
        x: R.Tensor((2, 2), "float32"), y: R.Tensor((2, 2), "float32"), z: R.Tensor((2,), "float32")
    ):
        with R.dataflow():
            a = R.add(x, z)
            b = R.add(a, y)
            R.output(b)
        return b

    with PatternContext() as ctx:
        left, right = wildcard(), wildcard()
        total = is_op("relax.add")(left, right)
        left.same_shape_as(right)
    found = ctx.match_dfb(block(func))
    assert found[total].name_hint == "b"


def test_incremental():
    exp, relu, sin, tanh = (unary(name) for name in ("exp", "nn.relu", "sin", "tanh"))
    with PatternContext() as outer:
        exp >> relu
        with PatternContext(incremental=True) as inner:
            relu >> sin
            assert len(inner.match_dfb(block(chain))) >= 3
        with PatternContext(incremental=True) as other:
            relu >> tanh
            assert other.match_dfb(block(chain)) is None
        assert PatternContext.current().same_as(outer)
    found = outer.match_dfb(block(chain))
    assert sin not in found and exp in found
    with pytest.raises(ValueError, match="expected a context around"):
        PatternContext(incremental=True)


def test_duplicated_sequences():
    with PatternContext() as ctx:
        first = unary("exp") >> unary("nn.relu")
        second = first.dup()
        assert not second[0].same_as(first[0])
        first ^ second
    assert ctx.match_dfb(block(chain)) is None

    @R.function
    def twice(x: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            a = R.nn.relu(R.exp(x))
            b = R.nn.relu(R.exp(a))
            R.output(b)
        return b

    assert ctx.match_dfb(block(twice))


# ---- rewriting ----------------------------------------------------------------------------------
def parallel_matmuls():
    with PatternContext() as ctx:
        inp, *weights = (wildcard() for _ in range(3))
        products = [is_op("relax.matmul")(inp, w) for w in weights]

    def rewriter(matches, _):
        both = relax.op.concat([matches[w] for w in weights], axis=1)
        parts = relax.op.split(relax.op.matmul(matches[inp], both), 2, axis=1)
        return {matches[p]: relax.TupleGetItem(parts, i) for i, p in enumerate(products)}

    return ctx, rewriter


def test_rewrite_parallel_matmuls():
    """The weight of the second product comes after the first product: bindings are sorted."""

    @R.function(private=True)
    def before(
        x: R.Tensor((2, 4), "float32"),
        w: R.Tensor((4, 3), "float32"),
        v: R.Tensor((4, 3), "float32"),
    ):
        with R.dataflow():
            a = R.matmul(x, w)
            u = R.nn.relu(v)
            b = R.matmul(x, u)
            c = R.add(a, b)
            R.output(c)
        return c

    @R.function(private=True)
    def expected(
        x: R.Tensor((2, 4), "float32"),
        w: R.Tensor((4, 3), "float32"),
        v: R.Tensor((4, 3), "float32"),
    ):
        with R.dataflow():
            u = R.nn.relu(v)
            lv = R.concat((w, u), axis=1)
            lv1 = R.matmul(x, lv)
            lv2 = R.split(lv1, 2, axis=1)
            a = lv2[0]
            b = lv2[1]
            c = R.add(a, b)
            R.output(c)
        return c

    after = rewrite_bindings(*parallel_matmuls(), before)
    assert_structural_equal(after, expected)
    assert rewrite_bindings(*parallel_matmuls(), chain).same_as(chain)


def test_rewriter_that_declines_is_asked_once_per_place():
    asked = []
    with PatternContext() as ctx:
        exp = is_op("relax.exp")(wildcard())

    def rewriter(matches, bindings):
        asked.append(bindings[matches[exp]].op.name)
        return {}

    assert rewrite_bindings(ctx, rewriter, parallel).same_as(parallel)
    assert asked == ["relax.exp", "relax.exp"]


def test_all_matches_are_rewritten():
    with PatternContext() as ctx:
        x = wildcard()
        exp = is_op("relax.exp")(x)
    after = rewrite_bindings(ctx, lambda m, _: {m[exp]: relax.op.sin(m[x])}, parallel)
    names = [binding.value.op.name for binding in block(after).bindings]
    assert names == ["relax.sin", "relax.nn.relu", "relax.sin", "relax.sin", "relax.subtract"]


def test_errors_of_rewriters():
    with PatternContext() as ctx:
        x = wildcard()
        exp = is_op("relax.exp")(x)
    other = relax.Var("other", R.Tensor((2, 2), "float32"))

    def run(rewriter, error, text):
        with pytest.raises(error, match=text):
            rewrite_bindings(ctx, rewriter, chain)

    run(lambda m, _: {other: m[x]}, ValueError, "variables of the block, got one for 'other'")
    run(lambda m, _: {m[exp]: other}, ValueError, "in scope in the new value of 'a', got 'other'")
    run(lambda m, _: 3, TypeError, "expected the rewriter to return a dictionary")
    run(lambda m, _: {m[exp]: m[exp]}, ValueError, "do not depend on themselves, got one for 'a'")
    run(lambda m, _: {m[exp]: relax.op.exp(m[x])}, ValueError, "come to an end, got 1000 rounds")

    def fails(matches, bindings):
        raise KeyError("mine")

    run(fails, KeyError, "mine")
