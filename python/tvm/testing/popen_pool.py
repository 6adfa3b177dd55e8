# SPDX-License-Identifier: Apache-2.0
"""Jobs for tests of pools of worker processes."""

import time

import tvm_ffi

TEST_GLOBAL_STATE_1 = 0
TEST_GLOBAL_STATE_2 = 0
TEST_GLOBAL_STATE_3 = 0


def initializer(test_global_state_1, test_global_state_2, test_global_state_3):
    """Sets the state of a worker."""
    global TEST_GLOBAL_STATE_1, TEST_GLOBAL_STATE_2, TEST_GLOBAL_STATE_3
    TEST_GLOBAL_STATE_1 = test_global_state_1
    TEST_GLOBAL_STATE_2 = test_global_state_2
    TEST_GLOBAL_STATE_3 = test_global_state_3


def after_initializer():
    """What initializer set."""
    return TEST_GLOBAL_STATE_1, TEST_GLOBAL_STATE_2, TEST_GLOBAL_STATE_3


@tvm_ffi.register_global_func("testing.identity_py", override=True)
def identity_py(arg):
    """The argument."""
    return arg


def register_ffi():
    """Registers a function in this process."""

    @tvm_ffi.register_global_func("testing.nested_identity_py", override=True)
    def _identity_py(arg):
        return arg


def call_py_ffi(arg):
    """Calls a registered function of Python."""
    return tvm_ffi.get_global_func("testing.nested_identity_py")(arg)


def call_cpp_ffi(arg):
    """Calls a registered function of C++."""
    return tvm_ffi.get_global_func("testing.echo")(arg)


def call_cpp_py_ffi(arg):
    """Calls both."""
    return tvm_ffi.get_global_func("testing.identity_cpp")(identity_py(arg))


def fast_summation(n):
    """0 + 1 + … + n - 1"""
    return n * (n - 1) // 2


def slow_summation(n):
    """The same, one after the other."""
    return sum(range(n))


def timeout_job(n):
    """Takes 1.5 n seconds."""
    time.sleep(n * 1.5)
