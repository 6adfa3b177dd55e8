# SPDX-License-Identifier: Apache-2.0
"""args_converter: decorators that turn Python arguments into expressions."""

import functools
import inspect
import typing

from .expr import Expr
from .utils import convert_to_expr


def _decorate(func, to_expr, to_list):
    """The function with some of its arguments converted, by name."""
    signature = inspect.signature(func)
    kinds = {name: p.kind for name, p in signature.parameters.items()}
    for name in (*to_expr, *to_list):
        if name not in kinds:
            raise ValueError(
                f"args_converter: expected a parameter of '{func.__name__}', got '{name}'"
            )

    def convert_list(name, value):
        if not isinstance(value, (list, tuple)):
            raise TypeError(
                f"{func.__name__}: expected a list or a tuple for '{name}', "
                f"got {type(value).__name__}"
            )
        return [convert_to_expr(v) for v in value]

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        values = bound.arguments
        for name in to_expr:
            if name not in values or values[name] is None:
                continue
            if kinds[name] == inspect.Parameter.VAR_POSITIONAL:
                values[name] = tuple(convert_to_expr(v) for v in values[name])
            else:
                values[name] = convert_to_expr(values[name])
        for name in to_list:
            if values.get(name) is not None:
                values[name] = convert_list(name, values[name])
        return func(*bound.args, **bound.kwargs)

    return wrapper


def _is_list_of_expr(hint):
    """List[Expr] and the like, also as one of several."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (list, tuple, typing.get_origin(typing.Sequence[int])):
        return any(a is Expr for a in args)
    return any(_is_list_of_expr(a) for a in args) if origin is not None else False


class _ArgsConverter:
    def to_expr(self, *arg_names):
        """Decorator: these arguments become expressions."""
        return lambda func: _decorate(func, arg_names, ())

    def to_list_expr(self, *arg_names):
        """Decorator: these arguments become lists of expressions."""
        return lambda func: _decorate(func, (), arg_names)

    def convert(self, args_to_expr, args_to_list_expr):
        """Decorator: both."""
        return lambda func: _decorate(func, tuple(args_to_expr), tuple(args_to_list_expr))

    def auto(self, func):
        """Decorator: what is annotated as Expr, or as a list of them, is converted."""
        hints = typing.get_type_hints(func)
        hints.pop("return", None)
        lists = [name for name, hint in hints.items() if _is_list_of_expr(hint)]
        exprs = [
            name
            for name, hint in hints.items()
            if name not in lists and (hint is Expr or Expr in typing.get_args(hint))
        ]
        return _decorate(func, exprs, lists)


args_converter = _ArgsConverter()
