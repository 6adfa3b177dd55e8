# SPDX-License-Identifier: Apache-2.0
"""Questions about struct info and about programs of the graph language."""

import logging
from enum import IntEnum

import tvm_ffi

from tvm._aliases import spelled
from tvm._derive import fill
from tvm.tir import IndexMap

from .estimate_memory_usage import estimate_memory_usage

__getattr__, __dir__ = fill(__name__)
_base_check, _find_ill_formed, _suggest_layout_transforms = (
    tvm_ffi.get_global_func("relax.analysis._" + name)
    for name in ("struct_info_base_check", "find_ill_formed", "suggest_layout_transforms")
)


class BaseCheckResult(IntEnum):
    """Whether everything of the derived kind is of the base kind."""

    FAIL_L0 = 0  # nothing is
    FAIL_L1 = 1  # some values are: a cast may succeed
    FAIL_L2 = 2  # it may be, but is not provable
    PASS = 3


def struct_info_base_check(base, derived):
    """Whether everything of the derived kind is of the base kind."""
    return BaseCheckResult(_base_check(base, derived))


@spelled
def well_formed(obj, check_struct_info=True):
    """Whether a module or function obeys the rules of the graph language; the reason why not is
    logged as a warning."""
    complaint = str(_find_ill_formed(obj, check_struct_info, True))
    if complaint:
        logging.getLogger("tvm.relax").warning("not well formed: %s", complaint)
    return not complaint


def suggest_layout_transforms(func, write_buffer_transforms):
    """{block: {block or buffer: IndexMap}}: how the iterators and the buffers of each block change
    so that the function writes its buffers in other layouts, given as maps or functions of
    indices."""
    maps = [
        m if isinstance(m, IndexMap) else IndexMap.from_func(m) for m in write_buffer_transforms
    ]
    return _suggest_layout_transforms(func, maps)
