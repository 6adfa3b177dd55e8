# SPDX-License-Identifier: Apache-2.0
"""Parsing a text, a function or a class."""

import inspect

import tvm_ffi

from tvm.ir import IRModule
from tvm.tir import PrimFunc

from ...ir_builder import IRBuilder
from .diagnostics import Source
from .parser import Parser
from .utils import inspect_class_capture, inspect_function_capture

WELL_FORMED_ERROR_MESSAGE = (
    "Program is not well-formed. If this is deliberate, consider setting check_well_formed in the "
    "top-level decorator to False (e.g., @I.ir_module(check_well_formed=False) or "
    "@T.prim_func(check_well_formed=False))"
)


_complaint = tvm_ffi.get_global_func("tir.analysis._complaint")


def _default_names():
    from .. import ir, tir

    return {"I": ir, "ir": ir, "T": tir, "tir": tir}


def parse(program, extra_vars=None, check_well_formed=True):
    """A function or module from a text, a Python function or a Python class.

    A text sees T, I, harmless built-in functions, and `extra_vars`."""
    source = Source(program)
    names, annotations = _default_names(), {}
    if inspect.isfunction(program):
        names.update(inspect_function_capture(program))
        annotations[program.__name__] = _values(program)
    elif inspect.isclass(program):
        names.update(inspect_class_capture(program))
        functions = [m for m in vars(program).values() if inspect.isfunction(m)]
        annotations = {function.__name__: _values(function) for function in functions}
    names.update(extra_vars or {})
    with IRBuilder() as builder:
        parser = Parser(source, names, builder)
        parser.annotations = annotations
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
    is_module = isinstance(result, IRModule)
    functions = result.functions.items() if is_module else [(None, result)]
    for var, func in functions:
        found = _complaint(func) if isinstance(func, PrimFunc) else None
        if found:
            text, span = found
            where = "" if var is None else f"in {var.name_hint} "
            raise source.error_at(span, f"{where}{text}. {WELL_FORMED_ERROR_MESSAGE}")


def scan_macro(program, extra_vars=None):
    """(source, names) of a macro."""
    source = Source(program)
    names = _default_names()
    if inspect.isfunction(program):
        names.update(inspect_function_capture(program))
    names.update(extra_vars or {})
    return source, names
