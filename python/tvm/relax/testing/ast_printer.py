# SPDX-License-Identifier: Apache-2.0
"""The nodes of an expression as text, with all their fields."""

from tvm import relax
from tvm._aliases import spelled
from tvm.relax.expr_functor import ExprFunctor


def wrap_quotes(text):
    """The text in quotes."""
    return f'"{text}"'


class ASTPrinter(ExprFunctor):
    """`Call(op=Op(name="relax.add"), args=[...])`"""

    def __init__(
        self, indent_str="    ", include_struct_info_annotations=True, include_call_attrs=True
    ):
        self.indent_str = indent_str
        self.include_struct_info_annotations = include_struct_info_annotations
        self.include_call_attrs = include_call_attrs

    def visit_expr(self, expr):
        if isinstance(expr, (relax.BindingBlock, relax.Binding)):
            block = isinstance(expr, relax.BindingBlock)
            return self.visit_binding_block(expr) if block else self.visit_binding(expr)
        return super().visit_expr(expr)

    # ---- layout ---------------------------------------------------------------------------------
    def indent(self, text):
        """The text one level further in."""
        return "\n".join(self.indent_str + line for line in text.split("\n"))

    def _join(self, begin, parts, end, force_newline):
        if force_newline or any("\n" in part for part in parts):
            return begin + "\n" + ",\n".join(map(self.indent, parts)) + "\n" + end
        return begin + ", ".join(parts) + end

    def build_ast_node(self, nodename, force_newline=False, **kwargs):
        """`nodename(key=value, ...)`"""
        parts = [f"{key}={value}" for key, value in kwargs.items()]
        return self._join(nodename + "(", parts, ")", force_newline and bool(parts))

    def build_expr(self, node, nodename, force_newline=False, **kwargs):
        """The same with the struct info of the node."""
        if self.include_struct_info_annotations and node.struct_info_ is not None:
            kwargs["struct_info"] = self.visit_struct_info_(node.struct_info_)
        return self.build_ast_node(nodename, force_newline, **kwargs)

    def build_list(self, members, open_tok="[", close_tok="]", force_newline=False):
        """`[a, b]`"""
        members = list(members)
        return self._join(open_tok, members, close_tok, force_newline and bool(members))

    def _exprs(self, exprs):
        return self.build_list(map(self.visit_expr, exprs))

    # ---- expressions ----------------------------------------------------------------------------
    def visit_constant_(self, op):
        return self.build_expr(op, "Constant", data=str(op.data.numpy().tolist()))

    def visit_tuple_(self, op):
        return self.build_expr(op, "Tuple", fields=self._exprs(op.fields))

    def visit_dataflow_var_(self, op):
        return self.build_expr(op, "DataflowVar", name_hint=wrap_quotes(op.name_hint))

    def visit_var_(self, op):
        return self.build_expr(op, "Var", name_hint=wrap_quotes(op.name_hint))

    def visit_shape_expr_(self, op):
        return self.build_expr(
            op, "ShapeExpr", values=self.build_list(map(self.visit_prim_expr_, op.values))
        )

    def visit_extern_func_(self, op):
        return self.build_expr(op, "ExternFunc", global_symbol=wrap_quotes(op.global_symbol))

    def visit_global_var_(self, op):
        return self.build_expr(op, "GlobalVar", name_hint=wrap_quotes(op.name_hint))

    def visit_function_(self, op):
        fields = {
            "params": self._exprs(op.params),
            "body": self.visit_expr(op.body),
            "ret_struct_info": self.visit_struct_info_(op.ret_struct_info),
            "is_pure": str(op.is_pure),
        }
        if len(op.attrs):
            items = [f"{wrap_quotes(k)}: {v!r}" for k, v in op.attrs.items()]
            fields["attrs"] = self.build_list(items, "{", "}")
        return self.build_ast_node("Function", True, **fields)

    def visit_call_(self, op):
        fields = {"op": self.visit_expr(op.op), "args": self._exprs(op.args)}
        if len(op.sinfo_args):
            fields["sinfo_args"] = self.build_list(map(self.visit_struct_info_, op.sinfo_args))
        if self.include_call_attrs and op.attrs is not None:
            fields["attrs"] = repr(op.attrs)
        return self.build_expr(op, "Call", **fields)

    def visit_seq_expr_(self, op):
        blocks = self.build_list(map(self.visit_binding_block, op.blocks), force_newline=True)
        return self.build_expr(op, "SeqExpr", True, blocks=blocks, body=self.visit_expr(op.body))

    def visit_if_(self, op):
        names = ("cond", "true_branch", "false_branch")
        return self.build_expr(op, "If", **{n: self.visit_expr(getattr(op, n)) for n in names})

    def visit_prim_value_(self, op):
        return self.build_expr(op, "PrimValue", value=self.visit_prim_expr_(op.value))

    def visit_string_imm_(self, op):
        return self.build_expr(op, "StringImm", value=wrap_quotes(op.value))

    def visit_data_type_imm_(self, op):
        return self.build_expr(op, "DataTypeImm", value=str(op.value))

    def visit_op_(self, op):
        return self.build_ast_node("Op", name=wrap_quotes(op.name))

    def visit_tuple_getitem_(self, op):
        return self.build_expr(
            op, "TupleGetItem", tuple_value=self.visit_expr(op.tuple_value), index=str(op.index)
        )

    def visit_prim_expr_(self, prim_expr):
        return f"PrimExpr(value=`{prim_expr}`)"

    def visit_type_(self, type_node):
        return repr(type_node)

    # ---- struct info ----------------------------------------------------------------------------
    def visit_struct_info_(self, struct_info_node):
        info, fields = struct_info_node, {}
        name = type(info).__name__
        if name == "PrimStructInfo":
            fields["dtype"] = str(info.dtype)
            if info.value is not None:
                fields["value"] = self.visit_prim_expr_(info.value)
        elif name == "ShapeStructInfo":
            fields["ndim"] = str(info.ndim)
            if info.values is not None:
                fields["values"] = self.build_list(map(self.visit_prim_expr_, info.values))
        elif name == "TensorStructInfo":
            fields["dtype"] = str(info.dtype)
            if info.shape is None:
                fields["ndim"] = str(info.ndim)
            elif isinstance(info.shape, relax.ShapeExpr):
                dims = self.build_list(map(self.visit_prim_expr_, info.shape.values))
                fields["shape"] = self.build_ast_node("ShapeExpr", values=dims)
            else:
                fields["shape"] = self.visit_expr(info.shape)
        elif name == "TupleStructInfo":
            fields["fields"] = self.build_list(map(self.visit_struct_info_, info.fields))
        elif name == "FuncStructInfo":
            if info.params is not None:
                fields["params"] = self.build_list(map(self.visit_struct_info_, info.params))
            fields["ret"] = self.visit_struct_info_(info.ret)
            fields["purity"] = str(info.purity)
        return self.build_ast_node(name, **fields)

    # ---- bindings -------------------------------------------------------------------------------
    def _block(self, name, block):
        bindings = self.build_list(map(self.visit_binding, block.bindings), force_newline=True)
        return self.build_ast_node(name, True, bindings=bindings)

    def visit_binding_block_(self, block):
        return self._block("BindingBlock", block)

    def visit_dataflow_block_(self, block):
        return self._block("DataflowBlock", block)

    def visit_match_cast_(self, match_cast):
        return self.build_ast_node(
            "MatchCast",
            var=self.visit_expr(match_cast.var),
            value=self.visit_expr(match_cast.value),
            struct_info=self.visit_struct_info_(match_cast.struct_info),
        )

    def visit_var_binding_(self, var_binding):
        return self.build_ast_node(
            "VarBinding",
            var=self.visit_expr(var_binding.var),
            value=self.visit_expr(var_binding.value),
        )

    def visit_binding_(self, binding):
        return self.visit_binding(binding)


@spelled
def dump_ast(exp, indent_str="    ", include_struct_info_annotations=True, include_call_attrs=True):
    """All nodes of an expression, with their fields, as text."""
    printer = ASTPrinter(indent_str, include_struct_info_annotations, include_call_attrs)
    return printer.visit_expr(exp)
