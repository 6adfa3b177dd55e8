# SPDX-License-Identifier: Apache-2.0
"""The program of a schedule with its tree of blocks and loops."""

import enum
from collections import namedtuple

import tvm_ffi

from tvm._derive import Node, function, register_node

CachedFlags = namedtuple("CachedFlags", ["affine_binding", "region_cover", "stage_pipeline"])
_make = tvm_ffi.get_global_func("tir.schedule._make_state")
_mod = function("tir.schedule._state_mod", __name__)
_flags = function("tir.schedule._cached_flags", __name__)
_mask = function("tir.schedule._debug_mask", __name__)


class ScheduleDebugMask(enum.IntEnum):
    """What is checked after every primitive."""

    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2


def _debug_mask(mask):
    """The number for "all", "none" or a number."""
    if isinstance(mask, str):
        if mask not in ("all", "none"):
            raise ValueError(f"debug_mask: expected 'all', 'none' or an integer, got '{mask}'")
        return int(mask == "all") and sum(ScheduleDebugMask)
    if not isinstance(mask, int):
        raise TypeError(
            f"debug_mask: expected 'all', 'none' or an integer, got {type(mask).__name__}"
        )
    return int(mask)


@register_node("tir.ScheduleState")
class ScheduleState(Node):
    _not_pickled = "keep its module"

    def __init__(self, mod, *, debug_mask="none", enable_check=True):
        self.__init_handle_by_constructor__(_make, mod, _debug_mask(debug_mask), enable_check)

    @property
    def mod(self):
        """The program as it is now."""
        return _mod(self)

    @property
    def debug_mask(self):
        """See ScheduleDebugMask."""
        return _mask(self)

    def _get_cached_flags(self, block_sref):
        """What holds of a block: its bindings are affine, the blocks before it wrote all that it
        reads, the blocks in it are stages one after the other."""
        return CachedFlags(*_flags(self, block_sref))
