# SPDX-License-Identifier: Apache-2.0
"""Errors that point at the user's line."""

import functools
import linecache
import os
import sys

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _is_ours(filename):
    # Errors from C++ carry frames of C++ files.
    if not filename.endswith((".py", ">")) or filename in ("<string>", "<unknown>"):
        return True
    return filename.startswith(_PACKAGE) or f"{os.sep}tvm_ffi{os.sep}" in filename


def describe(filename, line):
    """`file:line: the text of the line`."""
    text = linecache.getline(filename, line).strip()
    return f"{filename}:{line}" + (f": {text}" if text else "")


def of_function(fn):
    """Where the user wrote a function, or None."""
    code = getattr(fn, "__code__", None)
    if code is None or _is_ours(code.co_filename):
        return None
    return describe(code.co_filename, code.co_firstlineno)


def of_error(error):
    """The innermost line of the user's that led to the error."""
    found, tb = None, error.__traceback__
    while tb is not None:
        if not _is_ours(tb.tb_frame.f_code.co_filename):
            found = (tb.tb_frame.f_code.co_filename, tb.tb_lineno)
        tb = tb.tb_next
    return found and describe(*found)


def of_caller():
    """The innermost line of the user's that is running."""
    frame = sys._getframe(1)
    while frame is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else describe(frame.f_code.co_filename, frame.f_lineno)


def add(error, where):
    """Adds a place to the message, unless a call further in did."""
    if where is None or getattr(error, "_located", False) or len(error.args) != 1:
        return
    error.args = (f"{error.args[0]}\n  at {where}",)
    error._located = True


def located(fn):
    """Decorator of an entry point: its errors say where in the user's program they arose."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            add(error, of_error(error) or of_caller())
            raise

    return wrapper
