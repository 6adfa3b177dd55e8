# SPDX-License-Identifier: Apache-2.0
"""The statements of a function of the graph."""

import ast
import contextlib

import tvm_ffi

from tvm import relax, tir
from tvm.ir import PrimExpr
from tvm.relax.utils import convert_to_expr

from ...ir_builder import IRBuilder, IRBuilderFrame
from ...ir_builder import relax as builder
from ...ir_builder.ir import IRModuleFrame
from ...ir_builder.relax import frame
from ..core.error import ParserError
from ..core.evaluator import as_expr, unpack
from ..core.parser import register
from ..ir import ModuleNames
from ..tir import declared_variables
from .entry import MatchCastPair, RelaxMacro, StructInfoProxy, Symbols, resolve, symbols


def member(var, signature):
    """cls.f: the variable, with what is known of the function."""
    if var.struct_info_ is None:
        module = IRBuilder.current().find(IRModuleFrame)
        func = module.functions.get(var.name_hint)
        info = signature if isinstance(signature, relax.StructInfo) else None
        if info is None and func is not None:
            info = frame.native.info_of(func)
        if info is not None:
            frame.native.set_info(var, info)
    return var


def check(functions, module):
    """What is wrong with the functions of the graph. Operators may stand as they were written."""
    for _, func in functions if module is None else [(None, module)]:
        text = str(_find_ill_formed(func, False, False))
        if text:
            return text, None
    return None


_find_ill_formed = tvm_ffi.get_global_func("relax.analysis._find_ill_formed")


# ---- signatures ---------------------------------------------------------------------------------
def _text_evaluator(parser):
    """Evaluates texts in shapes with the names of the program; None for a name that is none."""

    def evaluate(text, names):
        try:
            node = ast.parse(text, mode="eval").body
        except SyntaxError:
            raise ValueError(f"expected a dimension such as 'n + 1', got {text!r}") from None
        if isinstance(node, ast.Name):
            try:
                value = parser.lookup(node)
            except ParserError:
                return None
            return value if isinstance(value, (int, PrimExpr)) else None
        with parser.scope(names):
            return parser.eval(node)

    return evaluate


def _signature(parser, node):
    """(parameters, struct info of the result or None, symbols)."""
    args = node.args
    for extra in [args.vararg, args.kwarg, *args.kwonlyargs, *args.posonlyargs, *args.defaults]:
        if extra is not None:
            raise ParserError(extra, "expected plain parameters of an R.function")
    declared = declared_variables(parser, node.body)
    found = Symbols(_text_evaluator(parser), dict(declared))
    written = {}
    with parser.scope(declared), symbols(None):
        for arg in args.args:
            if arg.annotation is None:
                raise ParserError(
                    arg, f"expected struct info for parameter {arg.arg}, such as R.Tensor"
                )
            if arg.arg in written:
                raise ParserError(arg, f"expected different parameters, got '{arg.arg}' twice")
            written[arg.arg] = None
            with contextlib.suppress(ParserError):  # it may name a parameter: see below
                written[arg.arg] = parser.annotation_of(node.name, arg.arg, arg.annotation)
        # A text that is a name defines a variable, wherever among the parameters it stands.
        for value in written.values():
            if isinstance(value, StructInfoProxy):
                for name in sorted(value.get_symbolic_vars()):
                    found.names.setdefault(name, tir.Var(name, "int64"))
        params = {}

        def info_of(param, annotation):
            with parser.scope(params):
                value = written.get(param)
                if value is None:
                    value = parser.annotation_of(node.name, param, annotation)
                return parser.evaluator._guard(annotation, resolve, value, found)

        for arg in args.args:
            params[arg.arg] = relax.Var(arg.arg, info_of(arg.arg, arg.annotation))
        found.may_define = False
        returns = None if node.returns is None else info_of("return", node.returns)
    return list(params.values()), returns, found


def _options(parser, node):
    _, options = parser.decorator(node)
    pure, private = options.pop("pure", True), options.pop("private", False)
    check = options.pop("check_well_formed", True)
    if options:
        raise ParserError(
            node.decorator_list[0], f"function: unknown option '{next(iter(options))}'"
        )
    parser.check_well_formed = check and getattr(parser, "check_well_formed", True)
    return pure, private


@register("relax", "declare")
def declare_function(parser, node):
    """What callers in the module know before the function is read."""
    pure, _ = _options(parser, node)
    params, returns, _ = _signature(parser, node)
    returns = relax.ObjectStructInfo() if returns is None else returns
    return relax.FuncStructInfo([param.struct_info for param in params], returns, pure)


# ---- functions ----------------------------------------------------------------------------------
def _function(parser, node, local=False):
    pure, private = _options(parser, node)
    params, returns, found = _signature(parser, node)
    with builder.function(pure, private) as func, parser.scope(found.names), parser.token("relax"):
        if not local:
            builder.func_name(node.name)
        for param in params:
            func.params.append(param)
            parser.define(param.name_hint, param)
        if returns is not None:
            builder.func_ret_struct_info(returns)
        with symbols(found):
            parser.visit_body(node.body)
        if func.output is None:
            raise ParserError(node, f"expected a return at the end of {node.name}, got none")
    return func.function


@register("relax", "function")
def visit_function_def(parser, node):
    _function(parser, node)


@register("relax.macro", "function")
def visit_macro_def(parser, node):
    _, options = parser.decorator(node)
    hygienic = options.get("hygienic", True)
    parser.define(
        node.name, RelaxMacro(parser.source, parser.names, hygienic, "relax", node, parser)
    )


@register("relax", ast.FunctionDef)
def visit_local_function(parser, node):
    token = parser.get_dispatch_token(node)
    if token == "relax.macro":
        visit_macro_def(parser, node)
        return
    if token != "relax":
        raise ParserError(node, f"expected @R.function on the local function {node.name}")
    block_builder = frame.function_frame("function").block_builder
    kind = relax.DataflowVar if block_builder.current_block_is_dataflow() else relax.Var
    var = kind(node.name, declare_function(parser, node))
    with parser.scope({node.name: var}):
        function = _function(parser, node, local=True)
    frame.native.set_info(var, function.struct_info)
    builder.emit_var_binding(relax.VarBinding(var, function))
    parser.define(node.name, var)


# ---- binding names ------------------------------------------------------------------------------
def _bind(parser, node, value, annotation=None):
    name = node.id
    if isinstance(value, MatchCastPair):
        info = _guarded(parser, node, value.struct_info)
        value = builder.emit_match_cast(value.value, info, annotation, name)
    elif isinstance(value, tir.Var) and not value.name_hint:
        _declare_symbol(parser, node, value)
        return
    elif _is_value(value):
        value = builder.emit(_as_relax(value), annotation, name)
    elif annotation is not None:
        raise ParserError(node, f"expected a value of the graph, got a {type(value).__name__}")
    parser.define(name, value)


def _declare_symbol(parser, node, value):
    """n = T.int64(): the signature has declared it where it stands at the top of the function."""
    for scope in reversed(parser.scopes):
        known = scope.get(node.id)
        if isinstance(known, tir.Var) and known.dtype == value.dtype:
            return
    parser.define(node.id, IRBuilder.name(node.id, value))


def _is_value(value):
    """Whether an assignment makes a binding of the program."""
    if isinstance(value, tuple):
        return all(_is_value(v) for v in value)
    return isinstance(value, (relax.Expr, PrimExpr, int, float)) and not isinstance(value, type)


def _as_relax(value):
    value = as_expr(value)
    if isinstance(value, (bool, int, float)):
        return relax.const(value)
    return convert_to_expr(value)


def _guarded(parser, node, written):
    """Struct info in the body, from what is written there."""
    found = Symbols(_text_evaluator(parser), may_define=False)
    return parser.evaluator._guard(node, resolve, written, found)


@register("relax", ast.Assign)
def visit_assign(parser, node):
    if len(node.targets) != 1:
        raise ParserError(node, "expected one target of an assignment")
    target, value = node.targets[0], parser.eval(node.value)
    if isinstance(target, ast.Subscript):
        raise ParserError(target, "expected a name to bind: values of the graph do not change")
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, relax.Expr):
        value = _items(value)
    unpack(target, value, lambda name, item: _bind(parser, name, item))


def _items(value):
    """The fields of a tuple; what is no variable is bound first, to be computed once."""
    if isinstance(value, relax.Tuple):
        return list(value.fields)
    var = value if isinstance(value, relax.Var) else builder.emit(value)
    if not isinstance(var.struct_info, relax.TupleStructInfo):
        raise TypeError(f"expected a tuple to take apart, got {var.struct_info}")
    return [var[i] for i in range(len(var.struct_info.fields))]


@register("relax", ast.AnnAssign)
def visit_ann_assign(parser, node):
    if not isinstance(node.target, ast.Name):
        raise ParserError(node.target, "expected a name before the struct info")
    if node.value is None:
        raise ParserError(node, f"expected a value for {node.target.id}")
    annotation = _guarded(parser, node.annotation, parser.eval(node.annotation))
    _bind(parser, node.target, parser.eval(node.value), annotation)


# ---- statements ---------------------------------------------------------------------------------
@register("relax", ast.Expr)
def visit_expr(parser, node):
    value = parser.eval(node.value)
    if value is None or isinstance(value, (str, ModuleNames)):
        return
    if isinstance(value, IRBuilderFrame):
        raise ParserError(node, "expected a block in a with statement")
    if not isinstance(value, relax.Expr):
        raise ParserError(node, f"expected a statement, got a {type(value).__name__}")
    if isinstance(value, relax.Var):
        return  # R.emit(...) has bound it
    var = builder.emit(value, name="_")
    info = var.struct_info
    if not (isinstance(info, relax.TupleStructInfo) and not info.fields):
        raise ParserError(node, "expected a name for a value that is not void: `x = ...`")


@register("relax", ast.With)
def visit_with(parser, node):
    if len(node.items) != 1:
        raise ParserError(node, "expected one block in a with statement")
    item = node.items[0]
    block = parser.eval(item.context_expr)
    if not isinstance(block, (frame.BlockFrame, frame.SeqExprFrame)):
        raise ParserError(
            item.context_expr, f"expected a block such as R.dataflow(), got {block!r}"
        )
    with block:
        body = list(node.body)
        returned = body.pop() if body and isinstance(body[-1], ast.Return) else None
        parser.visit_body(body)
    if isinstance(block, frame.BlockFrame):
        # What is seen behind the block has other variables there; the rest is gone.
        published = dict(block.published)
        names = parser.scopes[-1]
        for name, value in list(names.items()):
            if isinstance(value, relax.DataflowVar):
                names[name] = published.get(value)
                if names[name] is None:
                    del names[name]
    if returned is not None:
        parser.visit(returned)


@register("relax", ast.If)
def visit_if(parser, node):
    condition = as_expr(parser.eval(node.test))
    if not isinstance(condition, (relax.Expr, PrimExpr)):  # decided now
        parser.visit_body(node.body if condition else node.orelse)
        return
    if not node.orelse:
        raise ParserError(node, "expected an else: both branches give a value")
    with builder.If(condition) as choice:
        with builder.Then(), parser.scope():
            parser.visit_body(node.body)
        with builder.Else(), parser.scope():
            parser.visit_body(node.orelse)
    parser.define(choice.var_name, choice.var)


@register("relax", ast.Return)
def visit_return(parser, node):
    if node.value is None:
        raise ParserError(node, "expected a value to return")
    builder.func_ret_value(_as_relax(parser.eval(node.value)))
