# SPDX-License-Identifier: Apache-2.0
"""PatternMatchingRewriter: from a pattern, from a module, combined."""

import pytest
import tvm
from tvm import relax
from tvm.ir import assert_structural_equal
from tvm.relax.dpl import (
    ExprPatternRewriter,
    OrRewriter,
    PatternMatchingRewriter,
    TupleRewriter,
    is_op,
    wildcard,
)
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@R.rewriter
class DoubleBySum:
    @R.function
    def pattern(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            y = R.multiply(x, R.const(2.0, "float32"))
            R.output(y)
        return y

    @R.function
    def replacement(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y


@I.ir_module
class Double:
    @R.function
    def main(x: R.Tensor((8,), "float32"), y: R.Tensor((2, 4), "float32")):
        with R.dataflow():
            a = R.multiply(x, R.const(2.0, "float32"))
            b = R.multiply(a, R.const(3.0, "float32"))
            c = R.multiply(y, R.const(2.0, "float32"))
            R.output(b, c)
        return (b, c)


def test_from_pattern():
    x = wildcard()
    rewriter = PatternMatchingRewriter.from_pattern(
        is_op("relax.multiply")(x, wildcard()), lambda _, m: relax.op.exp(m[x])
    )
    assert isinstance(rewriter, ExprPatternRewriter)

    @R.function(private=True)
    def before(x: R.Tensor((8,), "float32")):
        y = R.multiply(x, R.const(2.0, "float32"))
        return y

    @R.function(private=True)
    def expected(x: R.Tensor((8,), "float32")):
        y = R.exp(x)
        return y

    assert_structural_equal(rewriter(before), expected)


def test_from_script_binds_symbolic_dimensions():
    """x is a vector of any length; the matrix stays."""

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((8,), "float32"), y: R.Tensor((2, 4), "float32")):
            with R.dataflow():
                a = R.add(x, x)
                b = R.multiply(a, R.const(3.0, "float32"))
                c = R.multiply(y, R.const(2.0, "float32"))
                R.output(b, c)
            return (b, c)

    assert_structural_equal(DoubleBySum(Double), Expected)
    assert_structural_equal(DoubleBySum(Double["main"]), Expected["main"])


def test_contradictory_dimensions_do_not_match():
    @R.rewriter
    class Square:
        @R.function
        def pattern(x: R.Tensor(("n", "n"), "float32")):
            y = R.exp(x)
            return y

        @R.function
        def replacement(x: R.Tensor(("n", "n"), "float32")):
            y = R.sin(x)
            return y

    @R.function(private=True)
    def before(x: R.Tensor((2, 2), "float32"), y: R.Tensor((2, 3), "float32")):
        a = R.exp(x)
        b = R.exp(y)
        return (a, b)

    @R.function(private=True)
    def expected(x: R.Tensor((2, 2), "float32"), y: R.Tensor((2, 3), "float32")):
        a = R.sin(x)
        b = R.exp(y)
        return (a, b)

    assert_structural_equal(Square(before), expected)


def test_dimensions_in_the_replacement():
    @R.rewriter
    class Flatten:
        @R.function
        def pattern(x: R.Tensor(("n", "m"), "float32")):
            y = R.flatten(x)
            return y

        @R.function
        def replacement(x: R.Tensor(("n", "m"), "float32")):
            n, m = T.int64(), T.int64()
            y = R.reshape(x, (n * m,))
            return y

    @R.function(private=True)
    def before(x: R.Tensor((2, 3), "float32")):
        y = R.flatten(x)
        return y

    @R.function(private=True)
    def expected(x: R.Tensor((2, 3), "float32")):
        y = R.reshape(x, (6,))
        return y

    assert_structural_equal(Flatten(before), expected)


def test_attributes_are_part_of_the_pattern():
    @R.rewriter
    class LastAxis:
        @R.function
        def pattern(x: R.Tensor(("n", "m"), "float32")):
            y = R.nn.softmax(x, axis=1)
            return y

        @R.function
        def replacement(x: R.Tensor(("n", "m"), "float32")):
            y = R.exp(x)
            return y

    @R.function(private=True)
    def before(x: R.Tensor((2, 3), "float32")):
        y = R.nn.softmax(x, axis=0)
        return y

    assert LastAxis(before).same_as(before)


def test_several_values_at_once():
    @R.rewriter
    class Both:
        @R.function
        def pattern(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
            a = R.add(x, y)
            b = R.subtract(x, y)
            return (a, b)

        @R.function
        def replacement(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
            n = T.int64()
            out = R.call_pure_packed(
                "both",
                x,
                y,
                sinfo_args=R.Tuple(R.Tensor((n,), "float32"), R.Tensor((n,), "float32")),
            )
            return (out[0], out[1])

    assert isinstance(Both, TupleRewriter)

    @R.function(private=True)
    def before(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            c = R.exp(a)
            b = R.subtract(x, y)
            d = R.add(c, b)
            R.output(d)
        return d

    @R.function(private=True)
    def expected(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            lv = R.call_pure_packed(
                "both",
                x,
                y,
                sinfo_args=R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")),
            )
            a = lv[0]
            c = R.exp(a)
            b = lv[1]
            d = R.add(c, b)
            R.output(d)
        return d

    assert_structural_equal(Both(before), expected)

    @R.function(private=True)
    def half(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        a = R.add(x, y)
        b = R.subtract(y, x)
        return (a, b)

    assert Both(half).same_as(half)


def test_or():
    @R.rewriter
    class TripleByExp:
        @R.function
        def pattern(x: R.Tensor(("n",), "float32")):
            y = R.multiply(x, R.const(3.0, "float32"))
            return y

        @R.function
        def replacement(x: R.Tensor(("n",), "float32")):
            y = R.exp(x)
            return y

    both = DoubleBySum | TripleByExp
    assert isinstance(both, OrRewriter)
    after = both(Double)
    names = [b.value.op.name for b in after["main"].body.blocks[0].bindings]
    assert names == ["relax.add", "relax.exp", "relax.multiply"]


def test_private_functions_come_along():
    @I.ir_module
    class Rule:
        @R.function
        def pattern(x: R.Tensor((8,), "float32")):
            y = R.exp(x)
            return y

        @R.function
        def replacement(x: R.Tensor((8,), "float32")):
            cls = Rule
            y = cls.helper(x)
            return y

        @R.function(private=True)
        def helper(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
            y = R.sin(x)
            return y

    @I.ir_module
    class Before:
        @R.function(private=True)
        def helper(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
            y = R.cos(x)
            return y

        @R.function
        def main(x: R.Tensor((8,), "float32")):
            cls = Before
            y = R.exp(x)
            z = cls.helper(y)
            return z

    after = PatternMatchingRewriter.from_module(Rule)(Before)
    assert relax.analysis.well_formed(after)
    first, second = (b.value.op for b in after["main"].body.blocks[0].bindings)
    assert after[first].body.blocks[0].bindings[0].value.op.name == "relax.sin"
    assert after[second].body.blocks[0].bindings[0].value.op.name == "relax.cos"
    # Nothing comes along where nothing matches.
    assert len(PatternMatchingRewriter.from_module(Rule)(Double).functions) == 1


def test_modules_that_are_no_rewriters():
    def module(**functions):
        return tvm.IRModule(
            {
                name: f.with_attr("global_symbol", name) if public else f
                for name, (f, public) in functions.items()
            }
        )

    def unary(op, shape=(8,), params=1):
        args = [relax.Var(f"x{i}", R.Tensor(shape, "float32")) for i in range(params)]
        bb = relax.BlockBuilder()
        with bb.function("f", args, private=True):
            bb.emit_func_output(bb.emit(op(args[0])))
        return bb.get()["f"]

    exp, sin = unary(relax.op.exp), unary(relax.op.sin)

    def run(error, text, **functions):
        with pytest.raises(error, match=text):
            PatternMatchingRewriter.from_module(module(**functions))

    run(KeyError, "expected a module with a function 'pattern'", replacement=(sin, True))
    run(KeyError, "expected a module with a function 'replacement'", pattern=(exp, True))
    run(
        ValueError, "'other' is publicly exposed",
        pattern=(exp, True), replacement=(sin, True), other=(sin, True),
    )  # fmt: skip
    two = unary(relax.op.sin, params=2)
    run(ValueError, "got 1 and 2 parameters", pattern=(exp, True), replacement=(two, True))
    longer = unary(relax.op.sin, (9,))
    run(ValueError, "one signature", pattern=(exp, True), replacement=(longer, True))
    run(ValueError, "to use its parameter 'x1'", pattern=(two, True), replacement=(two, True))
    prim_func = tvm.tir.PrimFunc([], tvm.tir.Evaluate(0))
    with pytest.raises(TypeError, match="expected 'pattern' to be a relax.Function"):
        PatternMatchingRewriter.from_module(
            tvm.IRModule({"pattern": prim_func, "replacement": exp})
        )
