# SPDX-License-Identifier: Apache-2.0
"""Parsing a text, a function or a class."""

import inspect
import types

from tvm.ir import IRModule

from ...ir_builder import IRBuilder
from .diagnostics import Source
from .language import CHECKS
from .parser import Parser
from .utils import inspect_class_capture, inspect_function_capture

WELL_FORMED_ERROR_MESSAGE = (
    "Program is not well-formed. If this is deliberate, consider setting check_well_formed in the "
    "top-level decorator to False (e.g., @I.ir_module(check_well_formed=False))"
)


def parse(program, extra_vars=None, check_well_formed=True, decorator=None):
    """A function or module from a text, a Python function or a Python class.

    A text sees the languages (I, T, …), harmless built-in functions, and `extra_vars`. A program
    that is not decorated is one of `decorator`."""
    source = Source(program)
    names, annotations, members = {}, {}, {}
    if isinstance(program, str):  # versions to 0.10 print @tvm.script.ir_module
        from .. import ir_module

        names["tvm"] = types.SimpleNamespace(script=types.SimpleNamespace(ir_module=ir_module))
    if inspect.isfunction(program):
        names.update(inspect_function_capture(program))
        annotations[program.__name__] = _values(program)
    elif inspect.isclass(program):
        names.update(inspect_class_capture(program))
        members = {m.__name__: m for m in vars(program).values() if inspect.isfunction(m)}
        annotations = {name: _values(function) for name, function in members.items()}
    names.update(extra_vars or {})
    with IRBuilder() as builder:
        parser = Parser(source, names, builder)
        parser.annotations, parser.functions, parser.called = annotations, members, decorator
        parser.parse()
    result = builder.result
    if result is None:
        raise source.error(None, "expected a function or a module")
    if check_well_formed and getattr(parser, "check_well_formed", True):
        check(source, result)
    return result


def _values(function):
    """Annotations that Python evaluated (`from __future__ import annotations` leaves texts)."""
    return {k: v for k, v in function.__annotations__.items() if not isinstance(v, str)}


def check(source, result):
    """Raises with the complaint where a program is not well-formed."""
    module = result if isinstance(result, IRModule) else None
    functions = [(None, result)] if module is None else result.functions.items()
    by_check = {}
    for var, func in functions:
        by_check.setdefault(CHECKS.of(func), []).append((var, func))
    by_check.pop(None, None)
    for complaint, members in by_check.items():
        found = complaint(members, module)
        if found:
            text, span = found
            raise source.error_at(span, f"{text}. {WELL_FORMED_ERROR_MESSAGE}")


def scan_macro(program, extra_vars=None):
    """(source, names) of a macro."""
    source, names = Source(program), {}
    if inspect.isfunction(program):
        names.update(inspect_function_capture(program))
    names.update(extra_vars or {})
    return source, names
