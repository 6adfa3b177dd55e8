# SPDX-License-Identifier: Apache-2.0
"""Registered functions that take and return values of each kind, attributes and a module."""

import tvm_ffi

from tvm._derive import node_class

_NAMES = (
    "ErrorTest device_test echo identity_cpp nop object_use_count run_check_signal "
    "test_check_eq_callback test_raise_error test_wrap_callback"
).split()
__all__ = [*_NAMES, "FrontendTestModule", "TestAttrs"]

globals().update({name: tvm_ffi.get_global_func("testing." + name) for name in _NAMES})

TestAttrs = node_class("attrs.TestAttrs", __name__)


class FrontendTestModule:
    """A module of Python functions."""

    def __init__(self):
        self._functions = {}

    def add_function(self, name, function):
        """Puts a function into the module."""
        self._functions[name] = tvm_ffi.convert(function)

    def get_function(self, name, query_imports=False):
        """The function of a name; AttributeError where there is none. There are no imports to look
        into with `query_imports`."""
        if name not in self._functions:
            raise AttributeError(f"FrontendTestModule: expected one of {list(self._functions)}")
        return self._functions[name]

    __getitem__ = get_function
