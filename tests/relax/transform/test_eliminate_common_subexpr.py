# SPDX-License-Identifier: Apache-2.0
"""Values that were computed before are not computed again."""

from tvm import relax
from tvm.relax import transform

from tests.relax.transform.bindings import EFFECT, F32, build, f, g, same


def test_eliminate_common_subexpr():
    def before(bb, x):
        with bb.dataflow():
            a, b = bb.emit(f(x)), bb.emit(f(x))
            c = bb.emit_output(g(a, b))
            d = bb.emit_output(f(x))
        return bb.emit(relax.Tuple([c, d]))

    def expected(bb, x):
        with bb.dataflow():
            a = bb.emit(f(x))
            c = bb.emit_output(g(a, a))
            d = bb.emit_output(a)
        return bb.emit(relax.Tuple([c, d]))

    same(transform.EliminateCommonSubexpr()(build(before)), build(expected))

    def effects(bb, x):
        bb.emit(relax.Call(EFFECT, [x]))
        bb.emit(relax.Call(EFFECT, [x]))
        return x

    mod = build(effects, pure=False)
    same(transform.EliminateCommonSubexpr()(mod), mod)


def test_numbers_are_shared():
    """A value of a number is that of another binding of the number."""

    def body(bb, x):
        with bb.dataflow():
            one, other = (bb.emit(relax.const(1.0, "float32")) for _ in range(2))
            a, b = bb.emit(f(x, one)), bb.emit(f(x, other))
            c = bb.emit_output(g(a, b))
        return c

    bindings = transform.EliminateCommonSubexpr()(build(body))["main"].body.blocks[0].bindings
    assert len(bindings) == 3
    assert bindings[-1].value.args[0].same_as(bindings[-1].value.args[1])


def test_values_that_are_overwritten_are_not_shared():
    """c is overwritten: were it a, so would be a, which is used afterwards."""

    def body(bb, x):
        a, c = bb.emit(f(x)), bb.emit(f(x))
        double = relax.op.call_inplace_packed(
            "test.pass.double", c, inplace_indices=[0], sinfo_args=[F32]
        )
        d = bb.emit(double)
        return bb.emit(relax.Tuple([a, d]))

    mod = build(body, pure=False)
    same(transform.EliminateCommonSubexpr()(mod), mod)


def test_subexpressions_of_a_branch_are_not_seen_behind_it():
    c = relax.Var("c", relax.PrimStructInfo("bool"))

    def body(bb, x, c):
        y = bb.emit(relax.If(c, f(x), x))
        return bb.emit(relax.Tuple([y, bb.emit(f(x))]))

    mod = build(body, params=[relax.Var("x", F32), c])
    same(transform.EliminateCommonSubexpr()(mod), mod)
