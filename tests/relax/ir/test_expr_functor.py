# SPDX-License-Identifier: Apache-2.0
"""Visitors and mutators in Python."""

import pytest
from tvm import ir, relax
from tvm.relax import PyExprMutator, PyExprVisitor
from tvm.relax import TensorStructInfo as T
from tvm.relax.expr_functor import mutator, visitor

F32, F16 = T([2, 3], "float32"), T([2, 3], "float16")


def _op(name):
    if name not in ir.Op.list_op_names():
        ir.register_op_attr(name, "FInferStructInfo", lambda call, _: call.args[0].struct_info)
        ir.register_op_attr(name, "FPurity", True)
    return ir.Op.get(name)


A, B = _op("test.functor.a"), _op("test.functor.b")


def _program():
    bb = relax.BlockBuilder()
    x, c = relax.Var("x", F32), relax.Var("c", relax.PrimStructInfo("bool"))
    with bb.function("main", [x, c]):
        with bb.dataflow():
            y = bb.emit(relax.Call(A, [x]))
            z = bb.emit_output(relax.Tuple([y, relax.const(1.0)]))
        w = bb.emit(relax.TupleGetItem(z, 0))
        w = bb.emit(relax.If(c, relax.Call(A, [w]), w))
        bb.emit_func_output(bb.match_cast(w, F32))
    return bb.get()["main"]


def test_a_visitor_sees_everything_in_order():
    @visitor
    class Names(PyExprVisitor):
        def __init__(self):
            self.seen = []

        def visit_call_(self, op):
            self.seen.append(str(op.op.name))
            super().visit_call_(op)

        def visit_var_def_(self, var):
            self.seen.append(var.name_hint)

        def visit_dataflow_var_def_(self, var):
            self.seen.append("df " + var.name_hint)

        def visit_constant_(self, op):
            self.seen.append("constant")

        def visit_if_(self, op):
            self.seen.append("if")
            super().visit_if_(op)

        def visit_match_cast_(self, binding):
            self.seen.append("match_cast")
            super().visit_match_cast_(binding)

    names = Names()
    names.visit_expr(_program())
    assert names.seen == [
        "x", "c", "test.functor.a", "df lv", "constant", "gv", "gv1", "if", "test.functor.a",
        "gv2", "gv3", "match_cast", "gv4",
    ]  # fmt: skip


def test_a_mutator_that_changes_nothing_keeps_the_program():
    func = _program()
    assert mutator(PyExprMutator)().visit_expr(func).same_as(func)


def test_a_mutator_rewrites_calls_and_infers_again():
    @mutator
    class Replace(PyExprMutator):
        def visit_call_(self, op):
            op = self.visit_expr_post_order(op)
            return relax.Call(B, op.args) if op.op.same_as(A) else op

    func = _program()
    new = Replace().visit_expr(func)
    assert relax.analysis.well_formed(new)
    ops = []
    relax.analysis.post_order_visit(
        new, lambda e: ops.append(str(e.op.name)) if isinstance(e, relax.Call) else None
    )
    assert ops == ["test.functor.b"] * 2

    @mutator
    class Halve(PyExprMutator):
        def visit_constant_(self, op):
            return relax.const(1.0, "float16")

        def visit_call_(self, op):
            op = super().visit_call_(op)
            return self.builder_.emit(relax.Call(B, [relax.const([[1.0] * 3] * 2, "float16")]))

    bb = relax.BlockBuilder()
    x = relax.Var("x", F32)
    with bb.function("main", [x]):
        y = bb.emit(relax.Call(A, [x]))
        bb.emit_func_output(bb.emit(relax.Tuple([y, y])))
    new = Halve().visit_expr(bb.get()["main"])
    assert new.ret_struct_info == relax.TupleStructInfo([F16, F16])
    assert relax.analysis.well_formed(new)


def test_helpers_of_the_mutator():
    @mutator
    class Look(PyExprMutator):
        def visit_tuple_(self, op):
            value = self.lookup_binding(op.fields[0])
            assert isinstance(value, relax.Call)
            return super().visit_tuple_(op)

    Look().visit_expr(_program())
    m = PyExprMutator()
    x = relax.Var("x", F32)
    half = m.with_struct_info(x, F16)
    assert half.vid.same_as(x.vid) and half.struct_info == F16
    m.set_var_remap(x.vid, half)
    assert m.get_var_remap(x.vid).same_as(half) and m.visit_expr(x).same_as(half)


def test_functors_without_handlers():
    class Nothing(relax.ExprFunctor):
        pass

    with pytest.raises(NotImplementedError, match="Nothing has no visit_var_"):
        Nothing().visit_expr(relax.Var("x", F32))
    with pytest.raises(TypeError, match="expected an expression of the graph, got int"):
        Nothing().visit_expr(3)


def test_an_error_in_a_mutator_leaves_its_builder_usable():
    @mutator
    class Fail(PyExprMutator):
        def visit_call_(self, op):
            raise KeyError("no")

    fail = Fail()
    with pytest.raises(KeyError):
        fail.visit_expr(_program())
    assert fail.builder_._depth() == 0
