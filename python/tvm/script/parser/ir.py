# SPDX-License-Identifier: Apache-2.0
"""Modules: @I.ir_module and what is in its class."""

import ast
import inspect
import sys

from tvm import ir as _ir
from tvm.ir import load_json

from ..ir_builder import IRBuilder
from ..ir_builder import ir as builder
from ..ir_builder.ir import (  # noqa: F401
    IRModuleFrame,
    decl_function,
    def_function,
    dummy_global_info,
    lookup_vdevice,
    module_attrs,
    module_get_attr,
    module_global_infos,
    module_set_attr,
    vdevice,
)
from .core.error import ParserError, did_you_mean
from .core.language import LANGUAGES, Language, register_language, such_as
from .core.parser import _VISITORS, Parser, register


def ir_module(mod=None, check_well_formed=True):
    """Parses a class into an IRModule."""
    from .core.entry import parse

    def decorate(mod):
        if not inspect.isclass(mod):
            raise TypeError(f"ir_module: expected a class, got {mod!r}")
        module = parse(mod, check_well_formed=check_well_formed, decorator=ir_module)
        return module

    return decorate if mod is None else decorate(mod)


ir_module.dispatch_token = "ir"


class ModuleNames:
    """`cls` in the functions of a module: their names."""

    def __init__(self, frame):
        self._frame = frame

    def script_attribute(self, name):
        frame = self._frame
        if name not in frame.global_vars:
            hint = did_you_mean(name, frame.global_vars)
            raise AttributeError(f"expected a function of the module, got '{name}'{hint}")
        var, language = frame.global_vars[name], LANGUAGES.get(Parser.current().tokens[-1])
        if language is None:
            return var
        return language.member(var, frame.signatures.get(name))


@register("default", ast.ClassDef)
def visit_class(parser, node):
    decorator, options = parser.decorator(node)
    if getattr(decorator, "dispatch_token", None) != "ir":
        raise ParserError(node, f"expected the class {node.name} to be decorated with @I.ir_module")
    parser.check_well_formed = options.pop("check_well_formed", True)
    if options:
        raise ParserError(
            node.decorator_list[0], f"ir_module: unknown option '{next(iter(options))}'"
        )
    with builder.ir_module() as frame, parser.token("ir"):
        names = ModuleNames(frame)
        with parser.scope({"cls": names, node.name: names}):
            functions = [s for s in node.body if isinstance(s, ast.FunctionDef)]
            # Devices that signatures name, first.
            parser.visit_body([s for s in node.body if not isinstance(s, ast.FunctionDef)])
            for function in functions:
                signature = _visitor(parser, function, "declare")(parser, function)
                try:
                    builder.decl_function(function.name, signature)
                except ValueError as error:
                    raise ParserError(function, str(error)) from None
            functions.sort(key=lambda function: _rank(parser.get_dispatch_token(function)))
            parser.visit_body(functions)


def _rank(token):
    return LANGUAGES[token].rank if token in LANGUAGES else Language.rank


def _visitor(parser, node, kind):
    """What reads the definition, or its signature, in the language of its decorator."""
    visitor = _VISITORS.get((parser.get_dispatch_token(node), kind))
    if visitor is None:
        raise ParserError(node, f"expected a decorator such as {such_as()} on {node.name}")
    return visitor


@register("default", ast.FunctionDef)
def visit_function(parser, node):
    _visitor(parser, node, "function")(parser, node)


@register("default", ast.Assign)
def visit_assign(parser, node):
    """Beside functions: the metadata section of a printed program, and Python values."""
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        raise ParserError(node, "expected an assignment to one name")
    name, value = node.targets[0].id, node.value
    is_metadata = isinstance(value, ast.Call) and ast.unparse(value.func) == "tvm.ir.load_json"
    if name == "metadata" and is_metadata:
        parser.define(name, load_json(parser.eval(value.args[0])))
    else:
        parser.define(name, parser.eval(value))


@register("ir", ast.Assign)
def visit_module_assign(parser, node):
    """name = metadata[...]: a function that has no syntax."""
    visit_assign(parser, node)
    name = node.targets[0].id
    value = parser.scopes[-1][name]
    if isinstance(value, _ir.BaseFunc):
        builder.def_function(name, value)


@register("default", ast.Expr)
def visit_expr(parser, node):
    if not (
        isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ):  # a docstring
        parser.eval(node.value)


def pyfunc(func):
    """A Python function kept in the module: not a part of compiled programs."""
    raise NotImplementedError("I.pyfunc: Python functions in modules are not supported yet")


def is_in_scope():
    return IRBuilder.is_in_scope()


def __getattr__(name):
    """Nodes of the IR core: I.Range, I.GlobalVar, I.PrimType."""
    value = getattr(_ir, name, None) if name[:1].isupper() else None
    if not isinstance(value, type):
        raise AttributeError(
            f"I: expected a name of TVMScript, got '{name}'{did_you_mean(name, __dir__())}"
        )
    return value


def __dir__():
    names = "ir_module module_attrs module_global_infos dummy_global_info Range lookup_vdevice "
    names += "pyfunc vdevice"
    return sorted(names.split())


register_language(Language("ir", "I", sys.modules[__name__], "I.ir_module"))
