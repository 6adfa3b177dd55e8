# SPDX-License-Identifier: Apache-2.0
"""TIR: @T.prim_func, @T.macro and the statements in them; other names of T: the builder's."""

import ast
import inspect
import sys
import warnings

import tvm_ffi

from tvm import tir as _tir
from tvm.ir import PrimType, TupleType
from tvm.tir import Buffer as _Buffer
from tvm.tir import BufferRegion as _BufferRegion
from tvm.tir import IterVar as _IterVar
from tvm.tir import Var as _Var

from ..ir_builder import IRBuilder, IRBuilderFrame
from ..ir_builder import tir as _builder
from ..ir_builder.tir import frame, types
from ..ir_builder.tir.ir import as_expr, meta_var
from ..ir_builder.tir.old_block import OldBlockFrame
from .core.error import ParserError
from .core.evaluator import is_symbolic, python_iterator, unpack
from .core.language import ITEMS, METHODS, VALUES, Language, register_language
from .core.parser import ScriptMacro, register
from .core.utils import in_module_class
from .ir import ModuleNames


# ---- decorators ---------------------------------------------------------------------------------
def prim_func(func=None, private=False, check_well_formed=True, s_tir=None, root_block=True):
    """Parses a Python function into a PrimFunc.

    private: no name in the compiled library. root_block=False: no implicit root block.
    s_tir is accepted for newer scripts and has no effect.
    """
    from .core.entry import parse

    in_class = in_module_class(2)

    def decorate(func):
        if not inspect.isfunction(func):
            raise TypeError(f"prim_func: expected a function, got {func!r}")
        if in_class:
            return func
        return parse(func, check_well_formed=check_well_formed, decorator=prim_func)

    return decorate if func is None else decorate(func)


prim_func.dispatch_token = "tir"


def macro(*args, hygienic=True):
    """A function whose body is parsed where it is called; if not hygienic, with names of there."""
    from .core.entry import scan_macro

    def decorate(func):
        return ScriptMacro(*scan_macro(func), hygienic, "tir")

    if not args:
        return decorate
    if len(args) > 1 or not inspect.isfunction(args[0]):
        raise TypeError("macro: expected @T.macro or @T.macro(hygienic=...) on a function")
    return decorate(args[0])


macro.dispatch_token = "tir.macro"


class _BufferProxy:
    """T.Buffer(shape, dtype, ...), also as an annotation."""

    __call__ = staticmethod(_builder.buffer)

    def __getitem__(self, keys):
        """The spelling T.Buffer[(16, 16), "float32"]."""
        if not isinstance(keys, tuple):
            return self(keys)
        return self(*keys) if len(keys) > 1 and not isinstance(keys[1], int) else self(keys)


class _PtrProxy:
    """T.Ptr[T.float32]: a pointer."""

    def __call__(self, dtype, storage_scope="global"):
        return types.dtype("handle")(dtype, storage_scope)

    def __getitem__(self, keys):
        return self(*keys) if isinstance(keys, tuple) else self(keys)


Buffer, Ptr = _BufferProxy(), _PtrProxy()


# ---- functions ----------------------------------------------------------------------------------
def _parameter(parser, function, arg):
    """The variable or buffer that an annotated parameter is."""
    if arg.annotation is None:
        raise ParserError(
            arg, f"expected a type for parameter {arg.arg}, such as T.handle or T.Buffer"
        )
    if IRBuilder.current().find(frame.PrimFuncFrame).declared or _names_texts(arg.annotation):
        value = parser.eval(arg.annotation)
    else:
        value = parser.annotation_of(function.name, arg.arg, arg.annotation)
    if isinstance(value, _Buffer):
        return _copy_buffer(value)
    if isinstance(value, _Var):
        return type(value)("", value.type_annotation)
    if isinstance(value, _PtrProxy):
        value = types.dtype("handle")
    try:
        return _Var("", types.as_type(value))
    except TypeError as error:
        raise ParserError(arg.annotation, str(error)) from None


def declared_variables(parser, body):
    """The variables that `n = T.int64()` declares anywhere at the top of the body: the signature
    may name them."""
    found = {}
    for stmt in body:
        if not (isinstance(stmt, ast.Assign) and len(stmt.targets) == 1):
            continue
        target, value = stmt.targets[0], stmt.value
        is_call = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
        if not (isinstance(target, ast.Name) and is_call and not value.args):
            continue
        try:
            if isinstance(parser.eval(value.func), types.DType):
                found[target.id] = IRBuilder.name(target.id, parser.eval(value))
        except ParserError:  # a call of something that the body defines
            continue
    return found


def _names_texts(annotation):
    """Whether dimensions are given as texts, as in T.Buffer(("n", 4))."""
    shapes = [n for n in ast.walk(annotation) if isinstance(n, (ast.Tuple, ast.List))]
    items = [item for shape in shapes for item in shape.elts]
    return any(isinstance(item, ast.Constant) and isinstance(item.value, str) for item in items)


def _copy_buffer(value):
    """One annotation may serve several parameters: each has memory of its own."""
    data = _Var("", value.data.type_annotation)
    return _builder.ir._make_buffer(
        data, value.dtype, value.shape, value.strides, value.elem_offset, value.data_alignment,
        value.offset_factor, int(value.buffer_type), [int(a) for a in value.axis_separators],
    )  # fmt: skip


def _return_type(parser, node):
    if node.returns is None or (
        isinstance(node.returns, ast.Constant) and node.returns.value is None
    ):
        return TupleType([])
    value = parser.annotation_of(node.name, "return", node.returns)
    if value is None:
        return TupleType([])
    try:
        return types.as_type(value)
    except TypeError as error:
        raise ParserError(node.returns, str(error)) from None


class Signature:
    """What callers in the module need of a function."""

    def __init__(self, ret_type, params):
        self.ret_type, self.params = ret_type, params

    def call(self, var, args):
        if len(args) != self.params:
            raise TypeError(f"{var.name_hint}: expected {self.params} arguments, got {len(args)}")
        return _tir.Call(_dtype_of(self.ret_type), var, [as_expr(a) for a in args])


class Callee:
    """A function of the module: called, it makes a call."""

    def __init__(self, var, signature):
        self.var, self.signature = var, signature

    def __call__(self, *args):
        if self.signature is None or not hasattr(self.signature, "call"):
            raise TypeError(f"{self.var.name_hint}: expected a T.prim_func to call")
        return self.signature.call(self.var, args)


def _dtype_of(ret_type):
    if isinstance(ret_type, PrimType):
        return ret_type.dtype
    return "void" if isinstance(ret_type, TupleType) else "handle"


@register("tir", "declare")
def declare_function(parser, node):
    return Signature(_return_type(parser, node), len(node.args.args))


@register("tir", "function")
def visit_function_def(parser, node):
    _, options = parser.decorator(node)
    private, root_block = options.pop("private", False), options.pop("root_block", True)
    check = options.pop("check_well_formed", True)
    options.pop("s_tir", None)
    if options:
        raise ParserError(
            node.decorator_list[0], f"prim_func: unknown option '{next(iter(options))}'"
        )
    parser.check_well_formed = check and getattr(parser, "check_well_formed", True)
    args = node.args
    for extra in [args.vararg, args.kwarg, *args.kwonlyargs, *args.posonlyargs, *args.defaults]:
        if extra is not None:
            raise ParserError(extra, "expected plain parameters of a T.prim_func")
    with _builder.prim_func(private, root_block) as func, parser.scope(), parser.token("tir"):
        _builder.func_name(node.name)
        func.declared.update((n, _Var(n, "int64")) for n in parser.type_variables(args))
        if any(arg.annotation is not None and _names_texts(arg.annotation) for arg in args.args):
            func.declared.update(declared_variables(parser, node.body))
        _builder.func_ret(_return_type(parser, node))
        for name, var in func.declared.items():
            parser.define(name, var)
        for arg in args.args:
            if arg.arg in parser.scopes[-1]:
                raise ParserError(
                    arg, f"expected different names of parameters, got '{arg.arg}' twice"
                )
            parser.define(arg.arg, _builder.arg(arg.arg, _parameter(parser, node, arg)))
        parser.visit_body(node.body)


@register("tir.macro", "function")
@register("tir", ast.FunctionDef)
def visit_macro_def(parser, node):
    """A macro in a module's text or in a function."""
    decorator, options = parser.decorator(node)
    if getattr(decorator, "dispatch_token", None) != "tir.macro":
        raise ParserError(node, f"expected @T.macro on the function {node.name} in a T.prim_func")
    hygienic = options.get("hygienic", True)
    parser.define(
        node.name, ScriptMacro(parser.source, parser.names, hygienic, "tir", node, parser)
    )


# ---- binding names ------------------------------------------------------------------------------
def _enter(frame_):
    """Enters a frame that ends with the surrounding Python block."""
    outer = IRBuilder.current().frames[-1]
    value = frame_.__enter__()
    outer.add_callback(lambda: frame_.__exit__(None, None, None))
    return value


def _bind(parser, node, value):
    """name = value: what the value is decides whether the program gets a variable."""
    name = node.id
    if isinstance(value, meta_var):
        value = value.value
    elif isinstance(value, IRBuilderFrame):
        value = IRBuilder.name(name, _enter(value))
    elif isinstance(value, (_Buffer, _IterVar)) or (
        isinstance(value, _Var) and not value.name_hint
    ):
        # A statement may be read several times, in a loop of Python.
        if parser.scopes[-1].setdefault(("bound", name), node) is not node:
            raise ParserError(node, f"expected a new name, got '{name}', which this scope has")
        declared = IRBuilder.current().find(frame.PrimFuncFrame).declared.get(name)
        if declared is not None and isinstance(value, _Var):  # the signature named it
            value = declared
        IRBuilder.name(name, value)
    elif is_symbolic(value) or (
        isinstance(value, (bool, int, float)) and not isinstance(value, type)
    ):
        value = IRBuilder.name(name, _enter(_builder.LetStmt(value)))
    elif isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, (_Buffer, _IterVar)) or (
                isinstance(item, _Var) and not item.name_hint
            ):
                IRBuilder.name(name, item)
    parser.define(name, value)


# ---- statements ---------------------------------------------------------------------------------
@register("tir", ast.For)
def visit_for(parser, node):
    if node.orelse:
        raise ParserError(node.orelse[0], "expected a for loop without else")
    loop = _iterator(parser, node.iter)
    if isinstance(loop, frame.ForFrame):
        with loop as loop_vars, parser.scope():
            names = []
            value = (
                loop_vars
                if isinstance(node.target, (ast.Tuple, ast.List)) or len(loop.vars) > 1
                else loop.vars[0]
            )
            if len(loop.vars) == 1 and isinstance(node.target, (ast.Tuple, ast.List)):
                value = loop.vars
            unpack(node.target, value, lambda target, var: names.append((target.id, var)))
            for name, var in names:
                if isinstance(var, list):
                    for i, v in enumerate(var):
                        IRBuilder.name(f"{name}_{i}", v)
                else:
                    IRBuilder.name(name, var)
                parser.define(name, var)
            parser.visit_body(node.body)
        return
    # Python's own loop: the statements once per item.
    try:
        items = python_iterator(loop)
    except TypeError as error:
        raise ParserError(
            node.iter, f"expected a loop such as range(n) or T.grid(n, m): {error}"
        ) from None
    for item in items:
        unpack(node.target, item, lambda target, value: parser.define(target.id, value))
        parser.visit_body(node.body)


def _iterator(parser, node):
    """range(...) is a loop of the program."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and parser.eval(node.func) is range
    ):
        options = {k.arg: parser.eval(k.value) for k in node.keywords}
        if not 1 <= len(node.args) <= 3 or not options.keys() <= {"annotations", "step"}:
            raise ParserError(node, "range: expected (stop), (start, stop) or (start, stop, step)")
        args = [as_expr(a) for a in parser.evaluator.items(node.args)]
        if len(args) == 3:
            options["step"] = args.pop()
        return parser.evaluator._guard(node, _builder.serial, *args, **options)
    return parser.eval(node)


@register("tir", ast.While)
def visit_while(parser, node):
    if node.orelse:
        raise ParserError(node.orelse[0], "expected a while loop without else")
    with _builder.While(parser.eval(node.test)), parser.scope():
        parser.visit_body(node.body)


@register("tir", ast.If)
def visit_if(parser, node):
    condition = as_expr(parser.eval(node.test))
    if not is_symbolic(condition):  # decided now
        parser.visit_body(node.body if condition else node.orelse)
        return
    with _builder.If(condition):
        with _builder.Then(), parser.scope():
            parser.visit_body(node.body)
        if node.orelse:
            with _builder.Else(), parser.scope():
                parser.visit_body(node.orelse)


@register("tir", ast.With)
def visit_with(parser, node):
    frames = []
    with parser.scope():
        try:
            for item in node.items:
                value = parser.eval(item.context_expr)
                if not isinstance(value, IRBuilderFrame) and not hasattr(value, "__enter__"):
                    raise ParserError(
                        item.context_expr, f"expected a frame such as T.block, got {value!r}"
                    )
                is_old = isinstance(value, OldBlockFrame)
                is_block = isinstance(value, frame.BlockFrame) and not is_old
                if is_block and item.optional_vars is not None:
                    raise ParserError(
                        item.optional_vars, "expected no name for a block: its axes have names"
                    )
                entered = value.__enter__()
                frames.append(value)
                if is_old and isinstance(item.optional_vars, ast.Name) and len(entered) == 1:
                    entered = entered[0]
                if item.optional_vars is not None:
                    unpack(
                        item.optional_vars,
                        entered,
                        lambda target, v: _bind_entered(parser, target, v),
                    )
            parser.visit_body(node.body)
        except BaseException as error:
            for value in reversed(frames):
                value.__exit__(type(error), error, error.__traceback__)
            raise
        for value in reversed(frames):
            value.__exit__(None, None, None)


def _bind_entered(parser, target, value):
    if isinstance(value, (_Buffer, _Var, _IterVar)):
        IRBuilder.name(target.id, value)
    parser.define(target.id, value)


@register("tir", ast.Assign)
def visit_assign(parser, node):
    if len(node.targets) != 1:
        raise ParserError(node, "expected one target of an assignment")
    target, value = node.targets[0], parser.eval(node.value)
    if isinstance(target, ast.Subscript):
        _store(parser, target, value)
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, IRBuilderFrame):
        unpack(target, _enter(value), lambda t, v: _bind(parser, t, v))
    else:
        unpack(target, value, lambda t, v: _bind(parser, t, v))


def _store(parser, target, value):
    buffer, index = parser.eval(target.value), parser.eval(target.slice)
    if not isinstance(buffer, _Buffer):
        raise ParserError(
            target, f"expected an element of a buffer, got one of {type(buffer).__name__}"
        )
    _builder.buffer_store(buffer, value, index if isinstance(index, (tuple, list)) else [index])


@register("tir", ast.AugAssign)
def visit_aug_assign(parser, node):
    load = ast.copy_location(
        ast.BinOp(left=_as_load(node.target), op=node.op, right=node.value), node
    )
    value = parser.eval(load)
    if isinstance(node.target, ast.Subscript):
        _store(parser, node.target, value)
    else:
        _bind(parser, node.target, value)


def _as_load(target):
    fields = {**dict(ast.iter_fields(target)), "ctx": ast.Load()}
    return ast.copy_location(type(target)(**fields), target)


@register("tir", ast.AnnAssign)
def visit_ann_assign(parser, node):
    if not isinstance(node.target, ast.Name):
        raise ParserError(node.target, "expected a name before the type")
    if node.value is None:
        raise ParserError(node, f"expected a value for {node.target.id}")
    annotation, value = node.annotation, as_expr(parser.eval(node.value))
    # x: T.let[T.int32], since 0.27
    if isinstance(annotation, ast.Subscript) and parser.eval(annotation.value) is _builder.let:
        annotation = annotation.slice
    annotation = parser.eval(annotation)
    try:
        var_type = types.as_type(annotation)
    except TypeError as error:
        raise ParserError(node.annotation, str(error)) from None
    var = _enter(_builder.LetStmt(value, var_type))
    parser.define(node.target.id, IRBuilder.name(node.target.id, var))


@register("tir", ast.Expr)
def visit_expr(parser, node):
    value = parser.eval(node.value)
    if value is None or isinstance(
        value, (str, Callee, ModuleNames)
    ):  # a docstring, or T.reads(...)
        if isinstance(value, str) and not isinstance(node.value, ast.Constant):
            raise ParserError(node, "expected a statement, got a text")
        return
    if isinstance(value, IRBuilderFrame):
        _enter(value)
    elif isinstance(value, _tir.Stmt) or is_symbolic(value) or isinstance(value, (int, bool)):
        _builder.evaluate(value)
    elif isinstance(value, (list, tuple)) and all(isinstance(v, _tir.Stmt) for v in value):
        for stmt in value:
            _builder.evaluate(stmt)
    elif isinstance(value, (_Buffer, _IterVar)):
        pass
    else:
        raise ParserError(node, f"expected a statement, got a {type(value).__name__}")


@register("tir", ast.Assert)
def visit_assert(parser, node):
    condition = parser.eval(node.test)
    message = "assertion failed" if node.msg is None else parser.eval(node.msg)
    if not is_symbolic(condition) and not isinstance(condition, (bool, int)):
        raise ParserError(node.test, f"expected a condition, got a {type(condition).__name__}")
    _enter(_builder.Assert(condition, message))


@register("tir", ast.Return)
def visit_return(parser, node):
    value = None if node.value is None else as_expr(parser.eval(node.value))
    is_none = node.value is None or isinstance(node.value, ast.Constant)
    if isinstance(value, (_tir.Stmt, IRBuilderFrame)) or (value is None and not is_none):
        raise ParserError(node, "expected a value to return, got a statement")
    _builder.evaluate(_tir.ret(value))


@register("tir", ast.Break)
def visit_break(parser, node):
    _builder.evaluate(_tir.op.break_loop())


@register("tir", ast.Continue)
def visit_continue(parser, node):
    _builder.evaluate(_tir.op.continue_loop())


@register("tir", ast.Nonlocal)
@register("tir", ast.Global)
def visit_nonlocal(parser, node):
    pass


def __getattr__(name):
    return getattr(_builder, name)


def __dir__():
    hidden = {"ast", "inspect", "sys", "tvm_ffi", "warnings"}
    own = [n for n in globals() if n[0] != "_" and n not in hidden and not n.startswith("visit_")]
    return sorted({*own, *dir(_builder)})


_complaint = tvm_ffi.get_global_func("tir.analysis._complaint")


def _check(functions, module):
    """What is wrong with the first function that is not well-formed."""
    for var, func in functions:
        found = _complaint(func)
        if found:
            text, span, is_broken = found
            text = text if var is None else f"in {var.name_hint} {text}"
            if is_broken:
                return text, span
            warnings.warn(text, SyntaxWarning, stacklevel=6)
    return None


VALUES[_BufferRegion], ITEMS[_Buffer], METHODS[_Buffer] = as_expr, _builder.access, True
register_language(
    Language(
        "tir", "T", sys.modules[__name__], "T.prim_func", Callee,
        {_tir.PrimFunc: _check}, 10,
    )
)  # fmt: skip
