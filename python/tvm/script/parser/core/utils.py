# SPDX-License-Identifier: Apache-2.0
"""What Python functions and classes can see where they were defined."""

import contextlib
import inspect
import linecache
import sys


def get_func_nonlocals(func):
    """The names that a function closes over, with their values; not those without one yet."""
    found, cells = {}, getattr(func, "__closure__", None) or ()
    for name, cell in zip(func.__code__.co_freevars, cells, strict=True):
        with contextlib.suppress(ValueError):  # not assigned yet
            found[name] = cell.cell_contents
    return found


def inspect_function_capture(func):
    """The names a function sees: globals, then what it closes over."""
    return {**func.__globals__, **get_func_nonlocals(func)}


def inspect_class_capture(cls):
    """The names that the functions of a class see."""
    names = {}
    for member in vars(cls).values():
        if inspect.isfunction(member):
            names.update(inspect_function_capture(member))
    return names


def in_module_class(depth):
    """Whether the caller is the body of a class that @I.ir_module or @R.rewriter will parse as a
    whole."""
    outer = sys._getframe(depth)
    if "__module__" not in outer.f_locals or "__qualname__" not in outer.f_locals:
        return False
    lines = linecache.getlines(outer.f_code.co_filename)
    for line in lines[outer.f_code.co_firstlineno - 1 : outer.f_lineno]:
        if line.lstrip().startswith("class "):
            return False
        if line.lstrip().startswith("@") and ("ir_module" in line or "rewriter" in line):
            return True
    return False


def is_defined_in_class(frames, obj):
    """Whether one of the frames (of `inspect.stack()`) is the body of the class that defines it."""
    bodies = (frame.frame.f_locals.get("__qualname__") for frame in frames)
    return any(body and obj.__qualname__ == f"{body}.{obj.__name__}" for body in bodies)


__all__ = [
    "get_func_nonlocals",
    "in_module_class",
    "inspect_class_capture",
    "inspect_function_capture",
    "is_defined_in_class",
]
