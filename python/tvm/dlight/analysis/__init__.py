# SPDX-License-Identifier: Apache-2.0
"""What rules ask about the blocks of a function."""

from .common_analysis import (
    BlockInfo,
    IterInfo,
    collect_block_iter_vars_used_in_access_region,
    collect_vars_used_in_prim_expr,
    detect_dominant_read,
    get_block_info,
    get_root_block,
    is_broadcast_epilogue,
    normalize_prim_func,
)
from .gemv import is_gemv, normalize

SBlockInfo, get_sblock_info = BlockInfo, get_block_info  # since 0.27

__all__ = [
    "BlockInfo",
    "IterInfo",
    "SBlockInfo",
    "collect_block_iter_vars_used_in_access_region",
    "collect_vars_used_in_prim_expr",
    "detect_dominant_read",
    "get_block_info",
    "get_root_block",
    "get_sblock_info",
    "is_broadcast_epilogue",
    "is_gemv",
    "normalize",
    "normalize_prim_func",
]
