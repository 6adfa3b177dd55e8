# SPDX-License-Identifier: Apache-2.0
"""Scopes, macros, statements of every language; a language adds visitors by `register`."""

import ast
import builtins
import contextlib
import functools
import inspect
import threading
import typing

from tvm import _aliases

from ...ir_builder.base import _set_span
from .diagnostics import Source
from .error import DiagnosticError, ParserError, did_you_mean
from .evaluator import Evaluator, is_symbolic, unpack
from .language import LANGUAGES, load_languages, such_as

# What a text may use of Python without being given it.
_SAFE_BUILTINS = {
    name: getattr(builtins, name)
    for name in "abs all any bool dict divmod enumerate float frozenset int isinstance len list "
    "max min pow range reversed round set slice sorted str sum tuple zip".split()
}
_VISITORS = {}  # (token, kind of node) -> function(parser, node)
_state = threading.local()


def register(token, kind):
    """@register("mine", ast.For): how a language reads a statement."""

    def decorate(function):
        _VISITORS[token, kind] = function
        return function

    return decorate


class Parser:
    """Walks a tree and builds the program with the frames of ir_builder."""

    def __init__(self, source, names, builder):
        self.source, self.builder = source, builder
        self.names = names  # given from outside: closures, globals, extra_vars
        self.builtins = _SAFE_BUILTINS if source.restricted else vars(builtins)
        self.scopes = [{}]
        self.tokens = ["default"]
        self.called = None  # the decorator, where it was called as a function
        self.annotations = {}  # of the Python functions: evaluated where they were defined
        self.evaluator = Evaluator(self.lookup, source.restricted, self.mark)

    @staticmethod
    def current():
        return getattr(_state, "parser", None)

    def parse(self):
        """Visits the tree; errors are shown with their place."""
        outer, _state.parser = Parser.current(), self
        try:
            tree = self.source.as_ast()
            self.visit_body(tree.body if isinstance(tree, ast.Module) else [tree])
        except ParserError as error:
            source = error.source or self.source
            raise source.error(error.node, str(error)) from error.__cause__
        except RecursionError:
            raise self.source.error(None, "expected a program of less depth") from None
        finally:
            _state.parser = outer

    def mark(self, node, value):
        """Notes on an expression where in the text it comes from."""
        _set_span(value, *self.source.place(node))

    # ---- names ----------------------------------------------------------------------------------
    def lookup(self, node):
        name = node.id
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        for names in (self.names, self.builtins):
            if name in names:
                return names[name]
        load_languages()
        for language in LANGUAGES.values():
            if name in (language.prefix, language.name):
                return language.module
        known = [n for scope in self.scopes for n in scope] + list(self.names)
        raise ParserError(node, f"undefined name '{name}'{did_you_mean(name, known)}")

    def define(self, name, value):
        self.scopes[-1][name] = value

    @contextlib.contextmanager
    def scope(self, names=None):
        self.scopes.append(dict(names or {}))
        try:
            yield
        finally:
            self.scopes.pop()

    @contextlib.contextmanager
    def token(self, token):
        self.tokens.append(token)
        try:
            yield
        finally:
            self.tokens.pop()

    # ---- for visitors registered by dispatch.register -------------------------------------------
    def eval_expr(self, node, extra_vars=None):
        """The value of an expression, which may also use `extra_vars`."""
        with self.scope(extra_vars):
            return self.eval(node)

    def eval_assign(self, target, source, bind_value, allow_shadowing=False):
        """Binds the names of an assignment to bind_value(parser, node, name, value)."""
        bound = {}

        def bind(node, value):
            if not allow_shadowing and node.id in self.scopes[-1]:
                raise ParserError(node, f"expected a new name, got '{node.id}' again")
            bound[node.id] = bind_value(self, node, node.id, value)
            self.define(node.id, bound[node.id])

        unpack(target, source, bind)
        return bound

    def report_error(self, node, err):
        """Stops parsing; the error is shown at the node."""
        cause = err if isinstance(err, Exception) else None
        raise ParserError(node, str(err)) from cause

    def get_dispatch_token(self, node):
        """The language that the decorator of a definition opens."""
        token = getattr(self.decorator(node)[0], "dispatch_token", None)
        if token is None:
            raise ParserError(node, f"expected a decorator such as {such_as()} on {node.name}")
        return token

    with_dispatch_token = token

    # ---- walking --------------------------------------------------------------------------------
    def eval(self, node):
        return self.evaluator.eval(node)

    def visit(self, node):
        visitor = _VISITORS.get((self.tokens[-1], type(node))) or _VISITORS.get(
            ("default", type(node))
        )
        if visitor is None:
            language = LANGUAGES.get(self.tokens[-1])
            what = f"@{language.decorator}" if language else "TVMScript"
            raise ParserError(
                node, f"expected a statement of {what}, got Python's {type(node).__name__}"
            )
        builder = self.builder
        outer, builder.place = builder.place, self.source.place(node)
        try:
            visitor(self, node)
        except (ParserError, DiagnosticError, RecursionError):
            raise
        except Exception as error:
            raise ParserError(node, f"{type(error).__name__}: {error}") from error
        finally:
            builder.place = outer

    def visit_body(self, nodes):
        for node in nodes:
            self.visit(node)

    def decorator(self, node):
        """(function, keyword arguments) of what decorates a definition, or (None, {})."""
        if not node.decorator_list:
            outermost = len(self.scopes) == 1
            return (self.called if outermost else None), {}
        if len(node.decorator_list) > 1:
            raise ParserError(
                node.decorator_list[1], f"expected one decorator on {node.name}, got more"
            )
        decorator = node.decorator_list[0]
        # What Python has called already need not be found again by its name.
        known = self.called if len(self.scopes) == 1 else None
        if not isinstance(decorator, ast.Call):
            return known or self.eval(decorator), {}
        if decorator.args:
            raise ParserError(decorator.args[0], "expected keyword arguments of a decorator")
        options = {k.arg: self.eval(k.value) for k in decorator.keywords}
        return known or self.eval(decorator.func), options

    def annotation_of(self, function, param, node):
        """The value of an annotation: evaluated by Python where the function came from there."""
        known = self.annotations.get(function, {})
        return known[param] if param in known else self.eval(node)

    def type_variables(self, node):
        """Names below the node that are variables of Python: since 0.27 `n = TypeVar("n")` declares
        a symbolic variable."""
        tables = [*reversed(self.scopes), self.names]
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        values = {n: next((t[n] for t in tables if n in t), None) for n in sorted(names)}
        return [n for n, value in values.items() if isinstance(value, typing.TypeVar)]


# ---- macros -------------------------------------------------------------------------------------
class ScriptMacro:
    """A function whose body is parsed anew at each call, inside the caller's program."""

    def __init__(self, source, names, hygienic, token, definition=None, parser=None):
        self.source, self.names, self.hygienic = source, names, hygienic
        self.definition = definition if definition is not None else source.as_ast()
        self._token, self._scopes = token, None if parser is None else list(parser.scopes)
        self.__name__ = self.definition.name

    def __repr__(self):
        return f"<macro {self.__name__}>"

    def __get__(self, instance, owner=None):
        """A macro in a class is a method."""
        return self if instance is None else functools.partial(self, instance)

    def _bind(self, args, kwargs):
        spec, params = self.definition.args, []
        kinds = inspect.Parameter
        evaluator = Evaluator(self._lookup_default, self.source.restricted)
        positional = [*spec.posonlyargs, *spec.args]
        defaults = [None] * (len(positional) - len(spec.defaults)) + list(spec.defaults)

        def default(node):
            return kinds.empty if node is None else evaluator.eval(node)

        params += [
            kinds(a.arg, kinds.POSITIONAL_OR_KEYWORD, default=default(d))
            for a, d in zip(positional, defaults, strict=True)
        ]
        if spec.vararg:
            params.append(kinds(spec.vararg.arg, kinds.VAR_POSITIONAL))
        params += [
            kinds(a.arg, kinds.KEYWORD_ONLY, default=default(d))
            for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
        ]
        if spec.kwarg:
            params.append(kinds(spec.kwarg.arg, kinds.VAR_KEYWORD))
        bound = inspect.Signature(params).bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _lookup_default(self, node):
        if node.id in self.names:
            return self.names[node.id]
        raise ParserError(node, f"undefined name '{node.id}'")

    def visit(self, parser):
        """Reads the body; what it gives is the value of the call."""
        parser.visit_body(self.definition.body)

    def __call__(self, *args, **kwargs):
        parser = Parser.current()
        if parser is None:
            raise ValueError(f"{self.__name__}: expected a macro to be called inside a program")
        arguments = self._bind(args, kwargs)
        outer = parser.source, parser.names, parser.scopes
        parser.source = self.source
        if self.hygienic:
            parser.names, parser.scopes = self.names, [*(self._scopes or []), arguments]
        else:
            parser.scopes = [*parser.scopes, arguments]
        try:
            with parser.token(self._token):
                return self.visit(parser)
        except ParserError as error:
            error.source = error.source or self.source
            raise
        finally:
            parser.source, parser.names, parser.scopes = outer


# ---- statements of every language ---------------------------------------------------------------
@register("default", ast.Pass)
def visit_pass(parser, node):
    pass


@register("default", ast.Import)
@register("default", ast.ImportFrom)
def visit_import(parser, node):
    """The import of a language at the top of a text names what the text has anyway."""
    module = getattr(node, "module", None)
    load_languages()
    for alias in node.names:
        full = alias.name if module is None else f"{module}.{alias.name}"
        own = _aliases.MODULES.get(full, full)
        language = LANGUAGES.get(own.removeprefix("tvm.script.").removeprefix("parser."))
        if full == "typing.TypeVar":
            parser.define(alias.asname or alias.name, typing.TypeVar)
            continue
        if full in _aliases.UNUSED_IMPORTS:
            continue
        if full != "tvm" and language is None:
            raise ParserError(node, f"expected no imports beside tvm.script, got '{full}'")
        if language is not None:
            parser.define(alias.asname or alias.name, language.module)


__all__ = ["Parser", "ScriptMacro", "Source", "is_symbolic", "register"]
