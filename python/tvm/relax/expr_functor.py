# SPDX-License-Identifier: Apache-2.0
"""Visitors and mutators in Python: classes override `visit_<node>_` for nodes they are about."""

import tvm_ffi

from tvm.ir import GlobalVar, Op, structural_equal

from .block_builder import BlockBuilder
from .expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)

_make_seq = tvm_ffi.get_global_func("relax.MakeSeq")
_NAMES = {
    Constant: "constant",
    Tuple: "tuple",
    DataflowVar: "dataflow_var",
    Var: "var",
    ShapeExpr: "shape_expr",
    ExternFunc: "extern_func",
    GlobalVar: "global_var",
    Function: "function",
    Call: "call",
    SeqExpr: "seq_expr",
    If: "if",
    Op: "op",
    TupleGetItem: "tuple_getitem",
    PrimValue: "prim_value",
    StringImm: "string_imm",
    DataTypeImm: "data_type_imm",
}


def visitor(cls):
    """Class decorator for subclasses of PyExprVisitor."""
    return cls


def mutator(cls):
    """Class decorator for subclasses of PyExprMutator."""
    return cls


def _handler(node):
    for cls in type(node).__mro__:
        if cls in _NAMES:
            return f"visit_{_NAMES[cls]}_"
    raise TypeError(f"visit_expr: expected an expression of the graph, got {type(node).__name__}")


class ExprFunctor:
    """A function over expressions by their class; a class without handler raises
    NotImplementedError."""

    def visit_expr(self, expr):
        return getattr(self, _handler(expr))(expr)

    def visit_binding(self, binding):
        if isinstance(binding, MatchCast):
            return self.visit_match_cast_(binding)
        if isinstance(binding, VarBinding):
            return self.visit_var_binding_(binding)
        raise TypeError(f"visit_binding: expected a binding, got {type(binding).__name__}")

    def visit_binding_block(self, block):
        if isinstance(block, DataflowBlock):
            return self.visit_dataflow_block_(block)
        if isinstance(block, BindingBlock):
            return self.visit_binding_block_(block)
        raise TypeError(f"visit_binding_block: expected a block, got {type(block).__name__}")

    def visit_var_def(self, var):
        if isinstance(var, DataflowVar):
            return self.visit_dataflow_var_def_(var)
        if isinstance(var, Var):
            return self.visit_var_def_(var)
        raise TypeError(f"visit_var_def: expected a variable, got {type(var).__name__}")


def _missing(name):
    def handler(self, op):
        raise NotImplementedError(f"{type(self).__name__} has no {name}")

    handler.__name__ = name
    return handler


_OTHERS = "var_binding match_cast binding_block dataflow_block var_def dataflow_var_def".split()
for _name in [*_NAMES.values(), *_OTHERS]:
    setattr(ExprFunctor, f"visit_{_name}_", _missing(f"visit_{_name}_"))


class PyExprVisitor(ExprFunctor):
    """Visits expressions in the order in which they run. A handler goes on below its node by
    calling the one it overrides."""

    def _leaf(self, op):
        self.visit_span(op.span)

    visit_constant_ = visit_var_ = visit_shape_expr_ = visit_extern_func_ = _leaf
    visit_global_var_ = visit_op_ = visit_prim_value_ = visit_string_imm_ = _leaf
    visit_data_type_imm_ = _leaf

    def visit_dataflow_var_(self, op):
        self.visit_var_(op)

    def visit_tuple_(self, op):
        self.visit_span(op.span)
        for field in op.fields:
            self.visit_expr(field)

    def visit_tuple_getitem_(self, op):
        self.visit_span(op.span)
        self.visit_expr(op.tuple_value)

    def visit_call_(self, op):
        self.visit_span(op.span)
        self.visit_expr(op.op)
        for arg in op.args:
            self.visit_expr(arg)

    def visit_if_(self, op):
        self.visit_span(op.span)
        self.visit_expr(op.cond)
        self.visit_expr(op.true_branch)
        self.visit_expr(op.false_branch)

    def visit_function_(self, op):
        self.visit_span(op.span)
        for param in op.params:
            self.visit_var_def(param)
        self.visit_expr(op.body)

    def visit_seq_expr_(self, op):
        self.visit_span(op.span)
        for block in op.blocks:
            self.visit_binding_block(block)
        self.visit_expr(op.body)

    def visit_var_binding_(self, binding):
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding):
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_binding_block_(self, block):
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_dataflow_block_(self, block):
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_var_def_(self, var):
        self.visit_span(var.span)

    def visit_dataflow_var_def_(self, var):
        self.visit_var_def_(var)

    def visit_span(self, span):
        """Called with the place in the source, or None."""


def _map(visit, items):
    """(the items mapped, whether one changed)"""
    items = list(items)
    mapped = [visit(item) for item in items]
    return mapped, any(not a.same_as(b) for a, b in zip(mapped, items, strict=True))


class PyExprMutator(ExprFunctor):
    """Rewrites a program through `builder_`: what changes gets new struct info, and variables whose
    struct info changes are replaced wherever they are used."""

    def __init__(self, mod=None):
        self.builder_ = BlockBuilder(mod)
        self._remap = {}

    def _same(self, op):
        return op

    visit_constant_ = visit_shape_expr_ = visit_extern_func_ = visit_global_var_ = _same
    visit_op_ = visit_prim_value_ = visit_string_imm_ = visit_data_type_imm_ = _same

    def visit_span(self, span):
        return span

    def visit_var_(self, op):
        return self._remap.get(op.vid, op) if self._remap else op

    def visit_dataflow_var_(self, op):
        return self.visit_var_(op)

    def visit_tuple_(self, op):
        fields, changed = _map(self.visit_expr, op.fields)
        return Tuple(fields, op.span) if changed else op

    def visit_tuple_getitem_(self, op):
        value = self.visit_expr(op.tuple_value)
        return op if value.same_as(op.tuple_value) else TupleGetItem(value, op.index, op.span)

    def visit_call_(self, op):
        callee = self.visit_expr(op.op)
        args, changed = _map(self.visit_expr, op.args)
        if not changed and callee.same_as(op.op):
            return op
        return Call(callee, args, op.attrs, op.sinfo_args, op.span)

    def visit_if_(self, op):
        cond = self.visit_expr(op.cond)
        yes = self.visit_with_new_scope(op.true_branch)
        no = self.visit_with_new_scope(op.false_branch)
        same = cond.same_as(op.cond) and yes.same_as(op.true_branch)
        return op if same and no.same_as(op.false_branch) else If(cond, yes, no, op.span)

    def visit_function_(self, op):
        params, changed = _map(self.visit_var_def, op.params)
        body = self.visit_with_new_scope(op.body, params)
        if not changed and body.same_as(op.body):
            return op
        ret = op.ret_struct_info if op.ret_struct_info.is_base_of(body.struct_info) else None
        return Function(params, body, ret, op.is_pure, op.attrs, op.span)

    def visit_seq_expr_(self, op):
        builder = self.builder_
        depth = builder._depth()
        builder._begin_sequence()
        try:
            for block in op.blocks:
                builder._append_block(self.visit_binding_block(block))
            body = builder._normalize_argument(self.visit_expr(op.body))
            blocks = builder._end_sequence()
        except BaseException:
            builder._unwind_to(depth)
            raise
        return _make_seq(op, blocks, body)

    def _block(self, block, begin):
        depth = self.builder_._depth()
        begin()
        try:
            for binding in block.bindings:
                self.visit_binding(binding)
            return self.builder_._end_block()
        except BaseException:
            self.builder_._unwind_to(depth)
            raise

    def visit_binding_block_(self, block):
        return self._block(block, self.builder_._begin_binding_block)

    def visit_dataflow_block_(self, block):
        return self._block(block, self.builder_._begin_dataflow_block)

    def visit_var_binding_(self, binding):
        value = self.builder_.normalize(self.visit_expr(binding.value))
        var = self.visit_var_def(binding.var)
        info, known = value.struct_info, var.struct_info_
        if known is None or not structural_equal(known, info):
            var = self.with_struct_info(var, info)
        if var.same_as(binding.var) and value.same_as(binding.value):
            self.builder_.emit_normalized(binding)
            return
        self.set_var_remap(binding.var.vid, var)
        self.builder_.emit_normalized(VarBinding(var, value, binding.span))

    def visit_match_cast_(self, binding):
        value = self.builder_._normalize_argument(self.visit_expr(binding.value))
        var = self.visit_var_def(binding.var)
        if var.same_as(binding.var) and value.same_as(binding.value):
            self.builder_.emit_normalized(binding)
            return
        self.set_var_remap(binding.var.vid, var)
        cast = MatchCast(var, value, binding.struct_info, binding.span)
        self.builder_.emit_normalized(cast)

    def visit_var_def_(self, var):
        return self._remap.get(var.vid, var) if self._remap else var

    def visit_dataflow_var_def_(self, var):
        return self.visit_var_def_(var)

    def visit_expr_post_order(self, expr):
        """The expression with what is below it rewritten by the default handlers, which call this
        object's for what is below."""
        return getattr(PyExprMutator, _handler(expr))(self, expr)

    def visit_with_new_scope(self, expr, params=None):
        """A body with its own scope: of a function with these parameters, or a branch."""
        self.builder_.begin_scope(params)
        try:
            seq = expr if isinstance(expr, SeqExpr) else SeqExpr([], expr)
            return self.visit_expr(seq)
        finally:
            self.builder_.end_scope()

    def set_var_remap(self, vid, var):
        """From now on `var` is used for the variable."""
        self._remap[vid] = var

    def get_var_remap(self, vid):
        """What is used for the variable."""
        return self._remap[vid]

    def lookup_binding(self, var):
        """The value of a variable that was bound in this rewriting, or None."""
        return self.builder_.lookup_binding(var)

    def with_struct_info(self, var, struct_info):
        """The variable with another struct info: it keeps its identity."""
        if var.struct_info_ is not None and var.struct_info_.same_as(struct_info):
            return var
        return type(var)(var.vid, struct_info, var.span)


__all__ = ["Expr", "ExprFunctor", "PyExprMutator", "PyExprVisitor", "mutator", "visitor"]
