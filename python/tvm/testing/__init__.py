# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of programs that use tvm; needs pytest only for the decorators."""

from .bisect import *  # noqa: F403
from .features import *  # noqa: F403
from .functions import *  # noqa: F403
from .minimise import *  # noqa: F403
from .parametrize import *  # noqa: F403
from .popen_pool import (
    after_initializer,
    call_cpp_ffi,
    call_cpp_py_ffi,
    call_py_ffi,
    fast_summation,
    initializer,
    register_ffi,
    slow_summation,
    timeout_job,
)
from .runner import *  # noqa: F403
from .utils import *  # noqa: F403
