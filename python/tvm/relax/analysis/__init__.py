# SPDX-License-Identifier: Apache-2.0
"""Questions about struct info and about programs of the graph language."""

from enum import IntEnum

import tvm_ffi

from tvm._derive import fill

__getattr__, __dir__ = fill(__name__)
_base_check = tvm_ffi.get_global_func("relax.analysis._struct_info_base_check")


class BaseCheckResult(IntEnum):
    """Whether everything of the derived kind is of the base kind."""

    FAIL_L0 = 0  # nothing is
    FAIL_L1 = 1  # some values are: a cast may succeed
    FAIL_L2 = 2  # it may be, but is not provable
    PASS = 3


def struct_info_base_check(base, derived):
    """Whether everything of the derived kind is of the base kind."""
    return BaseCheckResult(_base_check(base, derived))

